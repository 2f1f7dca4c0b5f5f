#include "lib/tensorfile/safetensors.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <nlohmann/json.hpp>

#include "lib/base/error.hpp"
#include "tests/lib/tensorfile/three_tensors.hpp"

using namespace hexad;
using namespace hexad::tensorfile;
using Json = nlohmann::ordered_json;
using namespace std::string_literals;

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

std::string file_of(const Json& header, const std::string& data) { return file_of(header.dump(), data); }

Json entry(const char* dtype, const Json& shape, uint64_t begin, uint64_t end) {
  return {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

void check_refusal(const std::string& bytes, const std::string& message) {
  TempFolder folder;
  const auto path = folder.write("m.safetensors", bytes);
  CHECK_THROWS_WITH_AS(tensorfile::Safetensors::open(path), doctest::Contains((path.string() + ": " + message).c_str()),
                       Error);
}

}  // namespace

TEST_CASE("a file made by hand gives its tensors by offset, and its metadata") {
  TempFolder folder;
  const Json header = {{"second", entry("I64", {1}, 6, 14)},
                       {"__metadata__", {{"format", "pt"}, {"note", "caf\xc3\xa9"}}},
                       {"first", entry("BF16", {3, 1}, 0, 6)},
                       {"none", entry("F32", {0, 4}, 14, 14)}};
  const auto path =
      folder.write("m.safetensors",
                   file_of(header.dump() + "   ", std::string("\x80\x3f\x00\xc0\x00\x00", 6) + "\7\0\0\0\0\0\0\0"s));
  const tensorfile::Safetensors read = tensorfile::Safetensors::open(path);
  REQUIRE(read.tensors().size() == 3);
  CHECK(read.tensors()[0].name == "first");
  CHECK(tensorfile::to_float32(read.at("first")) == std::vector<float>{1, -2, 0});
  CHECK(read.at("second").dtype == tensorfile::DType::i64);
  CHECK(tensorfile::to_float32(read.at("none")).empty());
  CHECK(read.metadata().at("note") == "caf\xc3\xa9");
  CHECK(read.find("third") == nullptr);
  CHECK_THROWS_WITH_AS(read.at("secund"), doctest::Contains("has no tensor \"secund\" (there is \"second\")"), Error);
  CHECK_THROWS_WITH_AS(tensorfile::to_float32(read.at("second")),
                       doctest::Contains("a tensor of dtype I64 cannot be read as fp32"), Error);
}

TEST_CASE("a written file is read again; the header is padded to eight bytes") {
  TempFolder folder;
  tensorfile::SafetensorsWriter writer(folder / "m.safetensors", kThree, {{"format", "pt"}});
  write_three(writer);
  const tensorfile::Safetensors read = tensorfile::Safetensors::open(folder / "m.safetensors");
  check_three(read);
  CHECK(read.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK((reinterpret_cast<uintptr_t>(read.at("a").data.data())) % 8 == 0);
  const tensorfile::Safetensors same = read;  // copies share the mapping
  check_three(same);
  CHECK(read.at("a").file->path() == folder / "m.safetensors");
}

TEST_CASE("headers that cannot be") {
  check_refusal("1234567", "not a safetensors file: only 7 bytes long");
  check_refusal(std::string(8, '\xff'), "not a safetensors file: its header would be 18446744073709551615 bytes long");
  check_refusal(std::string("\x10\0\0\0\0\0\0\0{}", 10), "truncated: the header needs 24 bytes, the file has 10");
  check_refusal(file_of(std::string("{\"a\":"), ""), "the header is not JSON");
  check_refusal(file_of(std::string("{\"\xff\":{}}"), ""), "the header is not JSON");
  check_refusal(file_of(std::string(), ""), "the header is not JSON");
  check_refusal(file_of(Json::array(), ""), "the header must be an object of tensors");
  check_refusal(file_of(std::string(100'000, '['), ""), "the header");
  check_refusal(file_of("{\"a\":" + std::string(20, '[') + std::string(20, ']') + "}", ""),
                "the header must be an object of tensors");
  const std::string scalar = entry("U8", Json::array(), 0, 1).dump();
  check_refusal(file_of("{\"a\":" + scalar + ",\"a\":" + scalar + "}", "x"),
                "tensor \"a\" appears twice in the header");
  check_refusal(file_of(Json{{"__metadata__", 3}}, ""), "__metadata__ is not an object");
  check_refusal(file_of(Json{{"__metadata__", {{"k", 3}}}}, ""), "__metadata__ \"k\" is not text");
}

TEST_CASE("tensors that cannot be") {
  const std::string eight(8, '\0');
  const auto refused = [&](const Json& tensor, const std::string& message) {
    check_refusal(file_of(Json{{"t", tensor}}, eight), "tensor \"t\": " + message);
  };
  refused(5, "its header entry is not an object");
  refused(entry("F3", {2}, 0, 8), "unknown dtype \"F3\"");
  refused({{"dtype", 1}, {"shape", {2}}, {"data_offsets", {0, 8}}}, "unknown dtype \"\"");
  refused({{"dtype", "F32"}, {"data_offsets", {0, 8}}}, "\"shape\" is missing");
  refused({{"dtype", "F32"}, {"shape", {2}}}, "\"data_offsets\" is missing");
  refused(entry("F32", {-2}, 0, 8), "\"shape\" holds -2, wanted non-negative integers");
  refused(entry("F32", {2.0}, 0, 8), "\"shape\" holds 2.0");
  refused(entry("F32", {"2"}, 0, 8), "\"shape\" holds \"2\"");
  refused(entry("F32", {1ull << 62, 4}, 0, 8), "a dimension of 4611686018427387904 makes it too large");
  refused(entry("U8", {UINT64_MAX}, 0, 8), "a dimension of 18446744073709551615 makes it too large");
  refused(entry("F32", {2}, 8, 0), "data_offsets [8, 0] is not a range");
  refused({{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0}}}, "data_offsets [0] is not a range");
  refused(entry("F32", {4}, 0, 16), "ends at byte 16 of the data, but the file has only 8 (truncated?)");
  refused(entry("F32", {2, 2}, 0, 8), "has 8 bytes, but F32 of shape [2, 2] needs 16");
}

TEST_CASE("tensors cover the data once") {
  const std::string eight(8, '\0');
  check_refusal(file_of(Json{{"a", entry("F32", {1}, 0, 4)}, {"b", entry("U8", {5}, 3, 8)}}, eight),
                "tensors \"a\" and \"b\" overlap");
  check_refusal(file_of(Json{{"a", entry("F32", {1}, 0, 4)}, {"b", entry("U8", {3}, 5, 8)}}, eight),
                "1 bytes before tensor \"b\" belong to no tensor");
  check_refusal(file_of(Json{{"a", entry("F32", {1}, 0, 4)}}, eight), "4 bytes at the end belong to no tensor");
}

TEST_CASE("a cut or damaged file is read or refused, never anything else") {
  TempFolder folder;
  tensorfile::SafetensorsWriter writer(folder / "m.safetensors", kThree);
  write_three(writer);
  const std::string whole = read_file(folder / "m.safetensors");
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(tensorfile::Safetensors::open(folder.write("cut.safetensors", whole.substr(0, size))), Error);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i) damaged[random() % whole.size()] = static_cast<char>(random());
    try {
      const tensorfile::Safetensors read = tensorfile::Safetensors::open(folder.write("cut.safetensors", damaged));
      for (const auto& tensor : read.tensors()) CHECK(tensor.data.size() == tensor.bytes());
    } catch (const Error&) {
    }
  }
}

TEST_CASE("an index and its shards must agree") {
  TempFolder folder;
  tensorfile::ShardedWriter writer(folder.path(), kThree, 24);
  write_three(writer);
  const auto index = folder / "model.safetensors.index.json";
  const Json whole = Json::parse(read_file(index));
  const std::string first = "model-00001-of-00002.safetensors", second = "model-00002-of-00002.safetensors";
  REQUIRE(whole["weight_map"]["c"] == second);
  const auto refused = [&](const Json& changed, const std::string& message) {
    folder.write(index.filename(), changed.dump());
    CHECK_THROWS_WITH_AS(tensorfile::Safetensors::open(folder.path()), doctest::Contains(message.c_str()), Error);
  };
  Json changed = whole;
  changed["weight_map"]["d"] = first;
  refused(changed, "index.json: tensor \"d\" is missing from " + first);
  changed = whole;
  changed["weight_map"].erase("b");  // a tensor that the index leaves out is none of the model's
  folder.write(index.filename(), changed.dump());
  CHECK(tensorfile::Safetensors::open(folder.path()).find("b") == nullptr);
  changed = whole;
  changed["weight_map"]["c"] = first;
  changed["weight_map"]["a"] = second;
  refused(changed, "tensor \"a\" is said to be in " + second + ", but " + first + " has it too");
  for (const Json& file : {Json("../x.safetensors"), Json("/etc/passwd"), Json(3), Json("sub/x.safetensors")}) {
    changed = whole;
    changed["weight_map"]["c"] = file;
    refused(changed, "tensor \"c\" is said to be in " + file.dump() + ", wanted the name of a file beside the index");
  }
  changed = whole;
  changed["weight_map"]["c"] = "gone.safetensors";
  refused(changed, "gone.safetensors: cannot be opened");
  changed["weight_map"]["c"] = "..";
  refused(changed, "not a regular file");
  for (const Json& json : {Json::array(), Json{{"weight_map", 1}}, Json::object()}) {
    refused(json, "index.json: not an index of safetensors files: no object \"weight_map\"");
  }
  tensorfile::SafetensorsWriter twice(folder / second, {{"a", tensorfile::DType::f32, {2}}});
  twice.write("a", bytes_of({1, 2}));
  twice.finish();
  refused(whole, "tensor \"a\" is said to be in " + first + ", but " + second + " has it too");
  CHECK_THROWS_WITH_AS(tensorfile::Safetensors::open(folder / "none.json"),
                       doctest::Contains("none.json: cannot be opened"), Error);
}

TEST_CASE("a folder without weights, a file that is none") {
  TempFolder folder;
  CHECK_THROWS_WITH_AS(tensorfile::Safetensors::open(folder.path()),
                       doctest::Contains("has neither model.safetensors nor model.safetensors.index.json"), Error);
  CHECK_THROWS_WITH_AS(tensorfile::Safetensors::open(folder / "m.safetensors"),
                       doctest::Contains("cannot be opened: No such file"), Error);
  std::filesystem::create_directory(folder / "model.safetensors");
  CHECK_THROWS_WITH_AS(tensorfile::Safetensors::open(folder.path()), doctest::Contains("not a regular file"), Error);
}

TEST_CASE("of a folder with both, the single file is read, as transformers does") {
  TempFolder folder;
  tensorfile::SafetensorsWriter writer(folder / "model.safetensors", kThree);
  write_three(writer);
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "gone.safetensors"}})");
  check_three(tensorfile::Safetensors::open(folder.path()));
}

TEST_CASE("what is written to copy-on-write pages stays in memory, and data outlives the reader") {
  TempFolder folder;
  tensorfile::SafetensorsWriter writer(folder / "m.safetensors", kThree);
  write_three(writer);
  const auto open = [&] { return tensorfile::Safetensors::open(folder / "m.safetensors", Pages::copy_on_write); };
  const tensorfile::SafetensorsEntry entry = open().at("a");
  const float changed = 8;
  std::memcpy(const_cast<std::byte*>(entry.data.data()), &changed, sizeof changed);
  CHECK(tensorfile::to_float32(entry) == std::vector<float>{8, 2});
  check_three(open());
}

TEST_CASE("values that are not finite are found wherever they are") {
  TempFolder folder;
  constexpr size_t count = (1 << 16) + 5;  // more than one chunk of the scan
  std::vector<float> values(count, 1);
  const auto scan = [&] {
    tensorfile::SafetensorsWriter writer(folder / "m.safetensors",
                                         {{"t", tensorfile::DType::f32, {count}}, {"i", tensorfile::DType::i32, {1}}});
    writer.write("t", bytes_of(values));
    writer.write("i", bytes_of({std::numeric_limits<float>::quiet_NaN()}));
    writer.finish();
    const tensorfile::Safetensors read = tensorfile::Safetensors::open(folder / "m.safetensors");
    tensorfile::require_finite(read.at("i"), "model");  // bits of an integer are no nan
    tensorfile::require_finite(read.at("t"), "model");
  };
  scan();
  values[count - 1] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(
      scan(), doctest::Contains("model: tensor \"t\" holds inf at element 65540: the weights are broken"), Error);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH_AS(scan(), doctest::Contains("tensor \"t\" holds nan at element 3"), Error);
}

TEST_CASE("binary16 and bfloat16: every value comes back, what lies between rounds to the even neighbour") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float f16 = tensorfile::f16_to_float(half), bf16 = tensorfile::bf16_to_float(half);
    if (std::isnan(f16) ? !std::isnan(tensorfile::f16_to_float(tensorfile::float_to_f16(f16)))
                        : tensorfile::float_to_f16(f16) != half)
      FAIL_CHECK("f16 " << bits);
    if (std::isnan(bf16) ? !std::isnan(tensorfile::bf16_to_float(tensorfile::float_to_bf16(bf16)))
                         : tensorfile::float_to_bf16(bf16) != half)
      FAIL_CHECK("bf16 " << bits);
    // Halfway to the next value, and a little to either side.
    if ((bits & 0x7fff) < 0x7bff) {
      const float middle = (f16 + tensorfile::f16_to_float(half + 1)) / 2, next = tensorfile::f16_to_float(half + 1);
      if (tensorfile::float_to_f16(middle) != (bits % 2 ? half + 1 : half)) FAIL_CHECK("middle of f16 " << bits);
      if (tensorfile::float_to_f16(std::nextafter(middle, f16)) != half) FAIL_CHECK("below the middle of f16 " << bits);
      if (tensorfile::float_to_f16(std::nextafter(middle, next)) != half + 1)
        FAIL_CHECK("above the middle of f16 " << bits);
    }
  }
  CHECK(tensorfile::float_to_bf16(1 + 0x1p-8f) == 0x3f80);
  CHECK(tensorfile::float_to_bf16(1 + 3 * 0x1p-8f) == 0x3f82);
  CHECK(tensorfile::float_to_bf16(3.4e38f) == 0x7f80);
  CHECK(tensorfile::float_to_f16(65519) == 0x7bff);
  CHECK(tensorfile::float_to_f16(65520) == 0x7c00);
  CHECK(tensorfile::float_to_f16(1e-9f) == 0);
}

TEST_CASE("dtypes: names both ways, conversion only of floating ones") {
  for (const char* name : {"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F8_E4M3", "F8_E5M2", "F16",
                           "BF16", "F32", "F64"}) {
    const auto dtype = tensorfile::dtype_from_name(name);
    REQUIRE(dtype);
    CHECK(tensorfile::dtype_name(*dtype) == name);
    CHECK(tensorfile::dtype_from_torch_name(tensorfile::torch_name(*dtype)) == dtype);
  }
  CHECK(tensorfile::dtype_from_torch_name("torch.bfloat16") == tensorfile::DType::bf16);
  CHECK_FALSE(tensorfile::dtype_from_torch_name("half"));
  const std::vector<float> values = {0.1f, -2};
  std::vector<std::byte> bytes(16);
  std::vector<float> back(2);
  tensorfile::from_float32(values, tensorfile::DType::f64, bytes);
  tensorfile::to_float32(tensorfile::DType::f64, bytes, back);
  CHECK(back == values);
  CHECK_THROWS_WITH_AS(tensorfile::from_float32(values, tensorfile::DType::i8, bytes),
                       doctest::Contains("weights cannot be stored as int8: choose float32, bfloat16 or float16"),
                       Error);
}
