// A read that fails is no end of a file.
#undef _FORTIFY_SOURCE  // whose read would stand before the one below

#include "lib/base/file/input_file.hpp"

#include <doctest/doctest.h>
#include <sys/syscall.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "tests/support/toy/toy.hpp"

namespace {
long good_bytes = -1;  // of every descriptor, read(2) fails from there on; -1: nowhere
}

// In front of the C library's, which the C++ library's streams use too: no disk of a test's own fails.
extern "C" ssize_t read(int descriptor, void* bytes, size_t count) {
  if (good_bytes >= 0) {
    const off_t at = ::lseek(descriptor, 0, SEEK_CUR);
    if (at >= good_bytes) return errno = EIO, -1;
    count = std::min<size_t>(count, static_cast<size_t>(good_bytes - at));
  }
  return ::syscall(SYS_read, descriptor, bytes, count);
}

using namespace hexad;
using plugin_test::error_of;

namespace {

// A disk that fails there, while it lives.
struct BadDisk {
  explicit BadDisk(long good) { good_bytes = good; }
  ~BadDisk() { good_bytes = -1; }
  BadDisk(const BadDisk&) = delete;
};

// `lines` lines of ten bytes each.
std::string numbered(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += fmt::format("line {:04}\n", i);
  return text;
}

size_t count_lines(const std::filesystem::path& file) {
  InputFile in(file);
  size_t count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

}  // namespace

TEST_CASE("whoever reads a file is told that its disk fails, wherever it does") {
  const toy::TempDir dir;
  const auto file = dir.write("file", numbered(30000));  // 300,000 bytes: several buffers
  const std::string wanted = file.string() + ": cannot be read: Input/output error";
  for (const long good : {0L, 1L, 10L, 65535L, 65536L, 65537L, 299999L}) {
    CAPTURE(good);
    const BadDisk disk(good);
    CHECK(error_of([&] { count_lines(file); }) == wanted);
    CHECK(error_of([&] { read_file(file); }) == wanted);
    CHECK(error_of([&] {
            InputFile in(file);
            std::string all{std::istreambuf_iterator<char>(in), {}};
          }) == wanted);
    CHECK(error_of([&] {
            InputFile in(file);
            std::vector<char> bytes(300000);
            in.read(bytes.data(), 300000);
          }) == wanted);
  }
  const auto json = dir.write("json", "[1, 2, 3]");
  const BadDisk disk(4);
  CHECK(error_of([&] {
          InputFile in(json);
          const auto parsed = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
          FAIL(parsed.is_array());
        }) == json.string() + ": cannot be read: Input/output error");
}

TEST_CASE("a file without a fault is read to its end, line by line, in parts, and from any place") {
  const toy::TempDir dir;
  const std::string text = numbered(30000) + "without an end";
  const auto file = dir.write("file", text);
  CHECK(count_lines(file) == 30001);
  InputFile in(file);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == text);
  in.clear();
  for (const long place : {299990L, 0L, 131072L, 15L}) {
    in.seekg(place);
    CHECK(in.tellg() == place);
    std::string part(10, '\0');
    in.read(part.data(), 10);
    CHECK(part == text.substr(static_cast<size_t>(place), 10));
    CHECK(in.tellg() == place + 10);
  }
  CHECK(count_lines(dir.write("empty", "")) == 0);
}

TEST_CASE("what cannot be opened is refused in the caller's words") {
  const toy::TempDir dir;
  CHECK(error_of([&] { InputFile in(dir / "none"); }) ==
        (dir / "none").string() + ": cannot be opened: No such file or directory");
  CHECK(error_of([&] { count_lines(dir.path()); }) == dir.path().string() + ": cannot be read: Is a directory");
  const auto words = [](const std::string& file, const char* what, int reason) {
    throw std::runtime_error(fmt::format("{}, {}, {}", file, what, reason));
  };
  CHECK_THROWS_WITH_AS(InputFile(dir / "none", words),
                       fmt::format("{}, cannot be opened, {}", (dir / "none").string(), ENOENT).c_str(),
                       std::runtime_error);
}
