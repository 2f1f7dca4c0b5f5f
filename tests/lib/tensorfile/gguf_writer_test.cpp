// GGUF files that are written: the bytes of the format's document, blocks as llama.cpp makes them.
#include "lib/tensorfile/gguf_writer.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "lib/base/error.hpp"
#include "lib/tensorfile/gguf_block.hpp"
#include "lib/tensorfile/safetensors_dtype.hpp"
#include "tests/checkpoint/temp_folder.hpp"
#include "tests/lib/tensorfile/gguf_file.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/report.hpp"
#include "tests/support/small_disk.hpp"

using namespace hexad;
using namespace hexad::tensorfile;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string quantized(const std::vector<float>& values, GgufType type) {
  const GgufBlock& block = *gguf_block(static_cast<uint32_t>(type));
  std::string out(values.size() / block.elements * block.bytes, '\0');
  quantize(values, type, std::as_writable_bytes(std::span(out)));
  return out;
}

// What a writer says that is given these bytes of a tensor of 8 bytes and one of 34.
std::string complaint(const std::vector<size_t>& sizes) {
  TempFolder folder;
  try {
    GgufWriter writer(folder / "m.gguf", {}, {{"a", GgufType::f32, {2}}, {"b", GgufType::q8_0, {32}}});
    for (const size_t size : sizes) writer.append(bytes_of(std::string(size, 'x')));
    writer.finish();
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    CHECK(names_in(folder.path()).empty());  // nothing half-written stays
    return std::string(error.what()).substr((folder / "m.gguf").string().size());
  }
}

}  // namespace

TEST_CASE("every kind of value, and tensors of every type that is written, are the bytes that the document says") {
  TempFolder folder;
  GgufFile wanted;
  wanted.set_text("general.architecture", "llama");
  wanted.set("flag", GgufFile::boolean, raw<uint8_t>(1));
  wanted.set_number("llama.block_count", 4'000'000'000);
  wanted.set("below", GgufFile::i32, raw<int32_t>(-7));
  wanted.set_real("llama.rope.freq_base", 1e-5f);
  wanted.set_texts("tokenizer.ggml.tokens", {"a", "", "\xc3\xa9"});
  wanted.set_integers("tokenizer.ggml.token_type", {1, -1});
  wanted.set("scores", GgufFile::array, raw<uint32_t>(GgufFile::f32) + raw<uint64_t>(1) + raw(0.5f));
  wanted.set_texts("none", {});
  const std::string blocks = quantized(std::vector<float>(64, 3), GgufType::q8_0);
  wanted.add_tensor("x", {2, 3}, {0, 1, 2, 3, 4, 5});
  wanted.tensors.push_back({"y", {2, 32}, GgufFile::Q8_0, blocks, {}});
  wanted.tensors.push_back({"z", {2, 1, 3}, GgufFile::BF16, std::string(12, 'z'), {}});
  const GgufEntries entries = {{"general.architecture", std::string("llama")},
                               {"flag", true},
                               {"llama.block_count", uint32_t{4'000'000'000}},
                               {"below", int32_t{-7}},
                               {"llama.rope.freq_base", 1e-5f},
                               {"tokenizer.ggml.tokens", std::vector<std::string>{"a", "", "\xc3\xa9"}},
                               {"tokenizer.ggml.token_type", std::vector<int32_t>{1, -1}},
                               {"scores", std::vector<float>{0.5f}},
                               {"none", std::vector<std::string>{}}};
  GgufWriter writer(folder / "m.gguf", entries,
                    {{"x", GgufType::f32, {2, 3}}, {"y", GgufType::q8_0, {2, 32}}, {"z", GgufType::bf16, {2, 1, 3}}});
  writer.append(bytes_of(wanted.tensors[0].data));
  for (const size_t part : {0, 1}) writer.append(bytes_of(blocks.substr(part * 34, 34)));  // a row at a time
  writer.append(bytes_of(wanted.tensors[2].data));
  writer.finish();
  CHECK(::read_file(folder / "m.gguf") == wanted.bytes());
  CHECK(Gguf::open(folder / "m.gguf").get<int64_t>("llama.block_count") == 4'000'000'000);
}

TEST_CASE("bytes that are not as announced") {
  CHECK(complaint({8, 34}) == "");
  CHECK(complaint({4, 4, 34}) == "");
  CHECK(complaint({9}) == ": tensor \"a\": got 9 bytes more, wanted at most 8");
  CHECK(complaint({8, 34, 1}) == ": tensor \"\": got 1 bytes more, wanted at most 0");
  CHECK(complaint({8, 30}) == ": tensor \"b\" has 30 of its 34 bytes");
  CHECK(complaint({}) == ": tensor \"a\" has 0 of its 8 bytes");
}

TEST_CASE("a file is written through no link, and one that is given up is removed") {
  TempFolder folder;
  folder.write("precious", "precious");
  std::filesystem::create_symlink("precious", folder / "m.gguf");
  CHECK_THROWS_WITH_AS(GgufWriter(folder / "m.gguf", {}, {}),
                       doctest::Contains("m.gguf: cannot be written: it is a symbolic link"), Error);
  CHECK(::read_file(folder / "precious") == "precious");
  CHECK_THROWS_WITH_AS(GgufWriter(folder / "none/m.gguf", {}, {}),
                       doctest::Contains("none/m.gguf: cannot be written: No such file or directory"), Error);
  { GgufWriter writer(folder / "n.gguf", {}, {{"a", GgufType::f32, {2}}}); }
  CHECK_FALSE(std::filesystem::exists(folder / "n.gguf"));
}

TEST_CASE("a full disk is told of, and leaves nothing") {
  TempFolder folder;
  const SmallDisk disk(folder / "disk", size_t{64} << 10);
  if (!disk) {
    test_report::skipped("no privilege to mount a small disk");
    return;
  }
  const std::string tensor(size_t{256} << 10, 'x');
  const auto write = [&] {
    GgufWriter writer(folder / "disk/m.gguf", {}, {{"a", GgufType::f32, {static_cast<int64_t>(tensor.size() / 4)}}});
    writer.append(bytes_of(tensor));
    writer.finish();
  };
  CHECK_THROWS_WITH_AS(write(), doctest::Contains("disk/m.gguf: cannot be written: No space left on device"), Error);
  CHECK(names_in(folder / "disk").empty());
}

TEST_SUITE_BEGIN("golden");

TEST_CASE("blocks are those of llama.cpp, and mean the same values") {
  golden::for_each_case("gguf_blocks", [](const golden::Json& test) {
    std::vector<float> values, wanted;
    for (const uint32_t bits : test["values"]) values.push_back(std::bit_cast<float>(bits));
    for (const uint32_t bits : test["dequantized"]) wanted.push_back(std::bit_cast<float>(bits));
    const std::string made = quantized(values, GgufType::q8_0);
    std::string digits;
    for (const char byte : made) digits += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    CHECK(digits == test["bytes"]);
    CHECK(dequantize({"t", GgufType::q8_0, {static_cast<int64_t>(values.size())}, bytes_of(made)}) == wanted);
  });
}

TEST_SUITE_END();

TEST_CASE("Q8_0 by hand: the scale is the largest magnitude by 127, halves go away from zero") {
  std::vector<float> values(32, 0);
  values[0] = 254, values[1] = 1, values[2] = -1, values[3] = 2.99f, values[4] = -254, values[5] = 127;
  const std::string block = quantized(values, GgufType::q8_0);
  CHECK(block.substr(0, 2) == raw<uint16_t>(0x4000));  // 2
  const int8_t wanted[] = {127, 1, -1, 1, -127, 64, 0};
  for (size_t i = 0; i < std::size(wanted); ++i) CHECK(static_cast<int8_t>(block[2 + i]) == wanted[i]);
}

TEST_CASE("the least magnitude that a type cannot hold, and the largest that it can") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const GgufType type : {GgufType::f16, GgufType::bf16, GgufType::q8_0}) {
    CAPTURE(static_cast<uint32_t>(type));
    const float limit = gguf_infinite_from(type);
    for (const bool fits : {true, false}) {
      std::vector<float> values(32, 1);
      values[7] = fits ? std::nextafter(limit, 0.0f) : std::nextafter(limit, inf);
      const std::string made = quantized(values, type);
      const float back = dequantize({"t", type, {32}, bytes_of(made)})[7];
      CHECK(std::isfinite(back) == fits);
    }
  }
  CHECK(gguf_infinite_from(GgufType::f32) == inf);
  CHECK_THROWS_WITH_AS(quantized({1}, GgufType::q4_0), "values are not stored as type 2", Error);
}
