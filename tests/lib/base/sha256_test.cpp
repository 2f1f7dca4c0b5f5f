#include "lib/base/sha256.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using hexad::Sha256;
using hexad::sha256_hex;

namespace {

// By the CPU's own instructions, where it has them, and without.
std::string digest(const std::string& text) {
  const std::string hex = sha256_hex(std::as_bytes(std::span(text)));
  Sha256 plain = Sha256::plain();
  plain.add(std::as_bytes(std::span(text)));
  CHECK(plain.hex() == hex);
  return hex;
}

}  // namespace

TEST_CASE("SHA-256 gives the standard's vectors") {
  CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 pads every length around a block") {
  CHECK(digest(std::string(55, 'a')) == "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(digest(std::string(56, 'a')) == "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(digest(std::string(64, 'a')) == "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST_CASE("SHA-256 of any bytes is the same with the CPU's own instructions and without") {
  std::string text;
  uint32_t drawn = 1;
  for (size_t length = 0; length < 400; ++length) {
    digest(text);
    drawn = drawn * 1664525 + 1013904223;
    text += static_cast<char>(drawn >> 24);
  }
}

TEST_CASE("SHA-256 of parts is that of the whole, wherever it is cut") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 37);
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t first = 0; first <= text.size(); first += 7) {
    for (const size_t second : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{200}}) {
      const size_t middle = std::min(second, text.size() - first);
      Sha256 sum;
      sum.add(bytes.first(first));
      sum.add(bytes.subspan(first, middle));
      sum.add(bytes.subspan(first + middle));
      CHECK(sum.hex() == sha256_hex(bytes));
    }
  }
}
