#include "lib/tensorfile/gguf.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "lib/base/error.hpp"
#include "tests/lib/tensorfile/gguf_file.hpp"
#include "tests/checkpoint/temp_folder.hpp"

using namespace hexad;
using tensorfile::Gguf;

namespace {

Gguf open(const TempFolder& folder, const GgufFile& file) { return Gguf::open(folder.write("m.gguf", file.bytes())); }

std::vector<float> values_of(uint32_t type, std::vector<uint64_t> shape, const std::string& data) {
  TempFolder folder;
  GgufFile file;
  file.tensors = {{"t", std::move(shape), type, data, {}}};
  return tensorfile::dequantize(*open(folder, file).find("t"));
}

constexpr uint16_t kHalf = 0x3800, kQuarter = 0x3400, kMinusOne = 0xbc00;  // 0.5, 0.25, -1 as binary16

// 16 bytes of 4-bit quants: element i is i, element i + 16 is 15 - i.
std::string nibbles() {
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += static_cast<char>(i | (15 - i) << 4);
  return bytes;
}

int nibble(int element) { return element < 16 ? element : 31 - element; }

// The fifth bits of a block: set for every third element.
constexpr uint32_t kFifth = 0x49249249;

int five_bits(int element) { return nibble(element) + 16 * static_cast<int>(kFifth >> element & 1u); }

// A small file with metadata of several kinds and two tensors.
GgufFile small_file() {
  GgufFile file;
  file.set_text("general.architecture", "llama");
  file.set_number("llama.block_count", 2);
  file.set_texts("tokenizer.ggml.tokens", {"a", "b"});
  file.add_tensor("x", {2, 3}, {0, 1, 2, 3, 4, 5});
  file.tensors.push_back({"y", {32}, GgufFile::Q8_0, raw(kHalf) + std::string(32, '\3'), {}});
  return file;
}

std::string refusal(const GgufFile& file) {
  TempFolder folder;
  try {
    open(folder, file);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()).starts_with((folder / "m.gguf").string() + ": "));
    return error.what();
  }
  return "(accepted)";
}

void check_refusal(const GgufFile& file, const char* message) {
  CHECK(refusal(file).c_str() == doctest::Contains(message));
}

}  // namespace

TEST_CASE("unquantised types hold their values") {
  CHECK(values_of(GgufFile::F32, {3}, raw_list<float>({1.5f, -0.f, 3e38f})) == std::vector<float>{1.5f, -0.f, 3e38f});
  CHECK(values_of(GgufFile::F16, {4}, raw_list<uint16_t>({0x3c00, 0xc100, 0x0001, 0x7bff})) ==
        std::vector<float>{1, -2.5, 0x1p-24f, 65504});
  CHECK(values_of(GgufFile::BF16, {2}, raw_list<uint16_t>({0x3f80, 0xc0a0})) == std::vector<float>{1, -5});
  CHECK(values_of(GgufFile::F32, {}, raw(7.f)) == std::vector<float>{7});
  CHECK(values_of(GgufFile::F32, {0, 3}, "").empty());
}

TEST_CASE("4-bit blocks: d (q - 8) and d q + m") {
  const auto q4_0 = values_of(GgufFile::Q4_0, {32}, raw(kHalf) + nibbles());
  const auto q4_1 = values_of(GgufFile::Q4_1, {2, 32},
                              raw(kHalf) + raw(kMinusOne) + nibbles() + raw(kQuarter) + raw(kHalf) + nibbles());
  for (int i = 0; i < 32; ++i) {
    CAPTURE(i);
    CHECK(q4_0[i] == 0.5f * (nibble(i) - 8));
    CHECK(q4_1[i] == 0.5f * nibble(i) - 1);
    CHECK(q4_1[32 + i] == 0.25f * nibble(i) + 0.5f);
  }
}

TEST_CASE("5-bit blocks: d (q - 16) and d q + m") {
  const auto q5_0 = values_of(GgufFile::Q5_0, {32}, raw(kHalf) + raw(kFifth) + nibbles());
  const auto q5_1 = values_of(GgufFile::Q5_1, {32}, raw(kQuarter) + raw(kMinusOne) + raw(kFifth) + nibbles());
  for (int i = 0; i < 32; ++i) {
    CAPTURE(i);
    CHECK(q5_0[i] == 0.5f * (five_bits(i) - 16));
    CHECK(q5_1[i] == 0.25f * five_bits(i) - 1);
  }
}

TEST_CASE("8-bit blocks: d q") {
  std::string quants;
  for (int i = 0; i < 32; ++i) quants += static_cast<char>(8 * i - 128);
  const auto q8_0 = values_of(GgufFile::Q8_0, {2, 32}, raw(kQuarter) + quants + raw(kMinusOne) + quants);
  for (int i = 0; i < 32; ++i) {
    CAPTURE(i);
    CHECK(q8_0[i] == 0.25f * (8 * i - 128));
    CHECK(q8_0[32 + i] == -(8.f * i - 128));
  }
}

TEST_CASE("metadata of every kind") {
  TempFolder folder;
  GgufFile file;
  file.set("u8", GgufFile::u8, raw<uint8_t>(200));
  file.set("i8", GgufFile::i8, raw<int8_t>(-5));
  file.set("u16", GgufFile::u16, raw<uint16_t>(60000));
  file.set("i16", GgufFile::i16, raw<int16_t>(-300));
  file.set("u32", GgufFile::u32, raw<uint32_t>(4'000'000'000));
  file.set("i32", GgufFile::i32, raw<int32_t>(-70000));
  file.set("u64", GgufFile::u64, raw<uint64_t>(1ull << 62));
  file.set("i64", GgufFile::i64, raw<int64_t>(INT64_MIN));
  file.set_real("f32", 1e-5f);
  file.set("f64", GgufFile::f64, raw(0.1));
  file.set_flag("flag", true);
  file.set_text("text", "caf\xc3\xa9 \xf0\x9f\x8c\x9e");
  file.set_texts("texts", {"", "\xe2\x82\xac"});
  file.set_integers("integers", {-1, 7});
  file.set("reals", GgufFile::array, raw<uint32_t>(GgufFile::f32) + raw<uint64_t>(2) + raw_list<float>({0.1f, 2}));
  file.set("flags", GgufFile::array, raw<uint32_t>(GgufFile::boolean) + raw<uint64_t>(3) + std::string("\0\1\0", 3));
  file.set("none", GgufFile::array, raw<uint32_t>(GgufFile::text) + raw<uint64_t>(0));
  const Gguf gguf = open(folder, file);
  const std::pair<const char*, int64_t> integers[] = {{"u8", 200},        {"i8", -5},          {"u16", 60000},
                                                      {"i16", -300},      {"u32", 4000000000}, {"i32", -70000},
                                                      {"u64", 1ll << 62}, {"i64", INT64_MIN}};
  for (const auto& [key, value] : integers) {
    CAPTURE(key);
    CHECK(gguf.get<int64_t>(key) == value);
  }
  CHECK(gguf.get<double>("f32") == 1e-5);  // the decimal that was meant, not the nearest float of it
  CHECK(gguf.get<double>("f64") == 0.1);
  CHECK(gguf.get<double>("i8") == -5);
  CHECK(gguf.get<bool>("flag"));
  CHECK(gguf.get<std::string>("text") == "caf\xc3\xa9 \xf0\x9f\x8c\x9e");
  CHECK(gguf.get<std::vector<std::string>>("texts") == std::vector<std::string>{"", "\xe2\x82\xac"});
  CHECK(gguf.get<std::vector<int64_t>>("integers") == std::vector<int64_t>{-1, 7});
  CHECK(gguf.get<std::vector<double>>("reals") == std::vector<double>{0.1, 2});
  CHECK(std::get<std::vector<bool>>(gguf.metadata().at("flags")) == std::vector<bool>{false, true, false});
  CHECK(gguf.get<std::vector<std::string>>("none").empty());
  CHECK(gguf.get_or<int64_t>("absent", 9) == 9);
  CHECK_THROWS_WITH_AS(gguf.get<bool>("flagg"), doctest::Contains("metadata \"flagg\" is missing (there is \"flag\")"),
                       Error);
  CHECK_THROWS_WITH_AS(gguf.get<int64_t>("text"), doctest::Contains("metadata \"text\" is a text, wanted an integer"),
                       Error);
  CHECK_THROWS_WITH_AS(gguf.get_or<bool>("reals", true), doctest::Contains("is a list of numbers, wanted a boolean"),
                       Error);
}

TEST_CASE("tensors: shape outermost first, alignment, versions 2 and 3") {
  TempFolder folder;
  GgufFile file = small_file();
  SUBCASE("version 3") {}
  SUBCASE("version 2") { file.version = 2; }
  SUBCASE("alignment 64") {
    file.alignment = 64;
    file.set_number("general.alignment", 64);
  }
  const Gguf gguf = open(folder, file);
  REQUIRE(gguf.tensors().size() == 2);
  CHECK(gguf.find("x")->shape == std::vector<int64_t>{2, 3});
  CHECK(gguf.find("x")->elements() == 6);
  CHECK(tensorfile::dequantize(*gguf.find("x")) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(tensorfile::dequantize(*gguf.find("y")) == std::vector<float>(32, 1.5f));
  CHECK(gguf.find("z") == nullptr);
}

TEST_CASE("a file cut anywhere is refused") {
  TempFolder folder;
  const std::string whole = small_file().bytes();
  const size_t data_end = whole.size() - (32 - 34 % 32);  // padding behind the last tensor may be absent
  for (size_t size = 0; size < data_end; ++size) {
    CAPTURE(size);
    CHECK_THROWS_WITH_AS(Gguf::open(folder.write("m.gguf", whole.substr(0, size))), doctest::Contains("truncated"),
                         Error);
  }
  Gguf::open(folder.write("m.gguf", whole.substr(0, data_end)));
}

TEST_CASE("a damaged file is read or refused, never anything else") {
  TempFolder folder;
  const std::string whole = small_file().bytes();
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i) damaged[random() % whole.size()] = static_cast<char>(random());
    CAPTURE(round);
    try {
      const Gguf gguf = Gguf::open(folder.write("m.gguf", damaged));
      for (const auto& tensor : gguf.tensors()) CHECK(tensorfile::dequantize(tensor).size() == tensor.elements());
    } catch (const Error&) {
    }
  }
}

TEST_CASE("what is no GGUF file") {
  TempFolder folder;
  CHECK_THROWS_WITH_AS(Gguf::open(folder / "none.gguf"), doctest::Contains("none.gguf: cannot be opened: No such file"),
                       Error);
  CHECK_THROWS_WITH_AS(Gguf::open(folder.path()), doctest::Contains("not a regular file"), Error);
  CHECK_THROWS_WITH_AS(Gguf::open(folder.write("empty", "")),
                       doctest::Contains("truncated: 4 bytes are wanted at byte 0"), Error);
  GgufFile file = small_file();
  file.magic = 0x04034b50;
  check_refusal(file, "not a GGUF file: it starts with 0x04034b50");
  file = small_file();
  file.version = 0x03000000;  // big-endian
  check_refusal(file, "GGUF version 50331648 cannot be read, only 2 and 3 (little-endian)");
  file.version = 1;
  check_refusal(file, "GGUF version 1 cannot be read");
}

TEST_CASE("absurd counts are refused before memory is asked for") {
  GgufFile file = small_file();
  file.entry_count = UINT64_MAX;
  check_refusal(file, "18446744073709551615 metadata entries are announced at byte 24");
  file = small_file();
  file.tensor_count = 1ull << 60;
  check_refusal(file, "1152921504606846976 tensors are announced");
  file = small_file();
  file.set("huge", GgufFile::array, raw<uint32_t>(GgufFile::i32) + raw<uint64_t>(1ull << 61));
  check_refusal(file, "2305843009213693952 array elements are announced");
  file = small_file();
  file.set("long", GgufFile::text, raw<uint64_t>(UINT64_MAX));
  check_refusal(file, "truncated: 18446744073709551615 bytes are wanted");
}

TEST_CASE("metadata that cannot be") {
  GgufFile file = small_file();
  file.set_text("bad", "\xc3");
  check_refusal(file, "metadata \"bad\" holds text that is not UTF-8");
  for (const char* text :
       {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\x80", "\xe2\x28\xa1", "\xff"}) {
    file.set_texts("bad", {"good", text});
    check_refusal(file, "not UTF-8");
  }
  file = small_file();
  file.set_number("caf\xe9", 1);
  check_refusal(file, "not UTF-8");
  file = small_file();
  file.set("big", GgufFile::u64, raw<uint64_t>(1ull << 63));
  check_refusal(file, "metadata \"big\" is 9223372036854775808: too large");
  file.set("big", 13, "");
  check_refusal(file, "metadata \"big\" is of unknown type 13");
  file.set("big", GgufFile::array, raw<uint32_t>(99) + raw<uint64_t>(0));
  check_refusal(file, "metadata \"big\" is of unknown type 99");
  file.set("big", GgufFile::array, raw<uint32_t>(GgufFile::array) + raw<uint64_t>(0));
  check_refusal(file, "metadata \"big\" is an array of arrays");
  file = small_file();
  file.entries.push_back(file.entries[0]);
  check_refusal(file, "metadata \"general.architecture\" appears twice");
  for (const uint32_t alignment : {0u, 24u, 1u << 21}) {
    file = small_file();
    file.set_number("general.alignment", alignment);
    check_refusal(file, "general.alignment is");
  }
}

TEST_CASE("tensors that cannot be") {
  GgufFile file = small_file();
  file.tensor("x").shape = {1, 1, 1, 2, 3};
  check_refusal(file, "tensor \"x\": has 5 dimensions, at most 4");
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{1ull << 61}, {1ull << 40, 1ull << 40}, {UINT64_MAX, 2}}) {
    file.tensor("x").shape = shape;
    check_refusal(file, "tensor \"x\": its dimensions are too large");
  }
  file = small_file();
  file.tensor("x").shape = {1ull << 59};
  check_refusal(file, "truncated: tensor \"x\" needs 2305843009213693952 bytes");
  file = small_file();
  file.tensor("x").type = GgufFile::Q4_K;
  check_refusal(file, "tensor \"x\": is stored as Q4_K, which cannot be read; convert it to one of F32, F16, BF16");
  file.tensor("x").type = 4;  // removed from the format
  check_refusal(file, "stored as unknown type 4");
  file.tensor("x").type = 1000;
  check_refusal(file, "stored as unknown type 1000");
  file = small_file();
  file.tensor("y").shape = {2, 16};
  check_refusal(file, "tensor \"y\": rows of 16 elements do not divide into Q8_0 blocks of 32");
  file = small_file();
  file.tensors.push_back(file.tensors[0]);
  check_refusal(file, "tensor \"x\" appears twice");
}

TEST_CASE("offsets that cannot be") {
  GgufFile file = small_file();
  file.tensor("y").offset = 33;
  check_refusal(file, "tensor \"y\": offset 33 is no multiple of the alignment 32");
  file.tensor("y").offset = 0;
  check_refusal(file, "overlap");
  file.tensor("y").offset = 128;
  check_refusal(file, "truncated: tensor \"y\" needs 34 bytes");
  file.tensor("y").offset = UINT64_MAX - 31;
  check_refusal(file, "truncated: tensor \"y\" needs 34 bytes");
}
