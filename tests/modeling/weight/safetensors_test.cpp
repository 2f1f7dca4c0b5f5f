// LibTorch tensors from and to safetensors: round trips, slices, views, dtypes, and errors as modeling has them. The
// format itself: tests/lib/tensorfile.
#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "lib/weights/headers.hpp"
#include "modeling/error.hpp"
#include "modeling/weight/safetensors_reader.hpp"
#include "modeling/weight/safetensors_writer.hpp"
#include "modeling/weight/stored_dtype.hpp"
#include "tests/modeling/support/temporary_dir.hpp"

namespace hexad::modeling {
namespace {

using Weights = std::map<std::string, at::Tensor>;

Weights some_weights() {
  at::manual_seed(8);
  return {{"a", at::randn({3, 4})},
          {"b", at::randn({5, 2}).to(at::kBFloat16)},
          {"c", at::randn({7}).to(at::kHalf)},
          {"empty", at::empty({0, 3})},
          {"scalar", at::scalar_tensor(2.5)}};
}

void save(const std::filesystem::path& dir, const Weights& weights, uint64_t limit = 1 << 20) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : weights) specs.push_back({name, tensor.sizes().vec(), tensor.scalar_type()});
  SafetensorsWriter writer(dir, specs, limit);
  for (auto it = weights.rbegin(); it != weights.rend(); ++it) writer.write(it->first, it->second);  // any order
  writer.finish();
}

void check_same(const SafetensorsReader& reader, const Weights& weights) {
  CHECK(reader.entries().size() == weights.size());
  for (const auto& [name, tensor] : weights) {
    CAPTURE(name);
    CHECK(bool(reader.tensor(name).scalar_type() == tensor.scalar_type()));
    CHECK(reader.tensor(name).equal(tensor));
  }
}

void check_refused(const std::filesystem::path& path, const std::string& message) {
  CHECK_THROWS_WITH_AS(SafetensorsReader{path}, message.c_str(), Error);
}

TEST_CASE("safetensors round trip, in one file and in shards") {
  const TemporaryDir dir;
  const Weights weights = some_weights();
  save(dir.path(), weights);
  check_same(SafetensorsReader(dir.path()), weights);
  CHECK(std::filesystem::exists(dir / "model.safetensors"));

  save(dir.path(), weights, 30);  // replaces the single file
  CHECK_FALSE(std::filesystem::exists(dir / "model.safetensors"));
  CHECK(std::filesystem::exists(dir / "model-00001-of-00003.safetensors"));
  check_same(SafetensorsReader(dir.path()), weights);
}

TEST_CASE("rows reads a range of dimension 0, and tensors outlive the reader") {
  const TemporaryDir dir;
  const Weights weights = some_weights();
  save(dir.path(), weights);
  at::Tensor rows;
  {
    const SafetensorsReader reader(dir / "model.safetensors");
    rows = reader.rows("b", 1, 4);
    CHECK_THROWS_AS(reader.rows("b", 2, 6), Error);
    CHECK_THROWS_WITH_AS(reader.tensor("d"),
                         ((dir / "model.safetensors").string() + ": there is no tensor 'd'").c_str(), Error);
  }
  CHECK(rows.equal(weights.at("b").slice(0, 1, 4)));
  rows.zero_();  // a private mapping
  check_same(SafetensorsReader(dir.path()), weights);
}

TEST_CASE("a writer converts dtypes, and refuses what was not announced") {
  const TemporaryDir dir;
  SafetensorsWriter writer(dir.path(), {{"a", {2}, at::kBFloat16}, {"b", {1}, at::kFloat}});
  const std::string where = dir.path().string();
  CHECK_THROWS_WITH_AS(writer.write("x", at::zeros({2})), (where + ": tensor \"x\" was not announced").c_str(), Error);
  CHECK_THROWS_WITH_AS(writer.write("a", at::zeros({3})), (where + ": tensor 'a' has shape [3], wanted [2]").c_str(),
                       Error);
  writer.write("a", at::full({2}, 1.5, at::kFloat));
  const std::string file = (dir / "model.safetensors").string();
  CHECK_THROWS_WITH_AS(writer.write("a", at::zeros({2})), (file + ": tensor \"a\" is written twice").c_str(), Error);
  CHECK_THROWS_WITH_AS(writer.finish(), (file + ": tensor \"b\" was announced but not written").c_str(), Error);
  writer.write("b", at::zeros({1}));
  writer.finish();
  CHECK(SafetensorsReader(dir.path()).tensor("a").equal(at::full({2}, 1.5, at::kBFloat16)));
}

TEST_CASE("what lib/tensorfile refuses is refused with its text, as an Error of modeling") {
  const TemporaryDir dir;
  const std::string file = (dir / "model.safetensors").string();
  check_refused(dir.path(), dir.path().string() + ": has neither model.safetensors nor model.safetensors.index.json");
  check_refused(file, file + ": cannot be opened: No such file or directory");
  write_file(file, "short");
  check_refused(file, file + ": not a safetensors file: only 5 bytes long");
  const auto header = [&](const std::string& json) {
    const uint64_t length = json.size();
    write_file(file, std::string(reinterpret_cast<const char*>(&length), 8) + json + std::string(8, '\0'));
  };
  const std::string half = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})",
                    all = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  header(R"({"a":)" + all + R"(,"a":)" + all + "}");
  check_refused(dir.path(), file + ": tensor \"a\" appears twice in the header");
  header(R"({"a":)" + half + R"(,"b":)" + all + "}");
  check_refused(dir.path(), file + ": tensors \"a\" and \"b\" overlap");
  header(R"({"a":)" + half + "}");
  check_refused(dir.path(), file + ": 4 bytes at the end belong to no tensor");
  header(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})");
  check_refused(dir.path(), file + ": tensor \"a\": ends at byte 16 of the data, but the file has only 8 (truncated?)");
}

TEST_CASE("eight-bit floats and wide unsigned integers are no weights") {
  const TemporaryDir dir;
  const std::string file = (dir / "model.safetensors").string();
  for (const std::string dtype : {"F8_E4M3", "F8_E5M2", "U16", "U32", "U64"}) {
    const int64_t bytes = dtype.ends_with("64") ? 8 : dtype.ends_with("32") ? 4 : dtype.ends_with("16") ? 2 : 1;
    const std::string json = fmt::format(R"({{"a":{{"dtype":"{}","shape":[1],"data_offsets":[0,{}]}}}})", dtype, bytes);
    const uint64_t length = json.size();
    write_file(file, std::string(reinterpret_cast<const char*>(&length), 8) + json +
                         std::string(static_cast<size_t>(bytes), '\0'));
    check_refused(file,
                  file + ": tensor \"a\" has dtype " + dtype +
                      ", wanted F32, BF16, F16, F64, I64, I32, I16, I8, U8 or BOOL: take the model in bfloat16 or "
                      "float32");
  }
  CHECK_THROWS_WITH_AS(SafetensorsWriter(dir.path(), {{"a", {1}, at::kComplexFloat}}),
                       "dtype ComplexFloat cannot be stored as safetensors", Error);
}

TEST_CASE("tensors of every dtype, wherever they lie in the file") {
  const TemporaryDir dir;
  Weights weights = {{"a", at::ones({1}, at::kChar)}, {"b", at::ones({2}, at::kDouble)}};  // b lies at an odd byte
  for (const at::ScalarType dtype : {at::kLong, at::kInt, at::kShort, at::kByte, at::kBool, at::kHalf})
    weights[c10::toString(dtype)] = at::ones({3}, dtype);
  save(dir.path(), weights);
  check_same(SafetensorsReader(dir.path()), weights);
}

TEST_CASE("what lib/weights lets through has a type of LibTorch's") {
  for (const tensorfile::DType type :
       {tensorfile::DType::boolean, tensorfile::DType::u8, tensorfile::DType::i8, tensorfile::DType::u16,
        tensorfile::DType::i16, tensorfile::DType::u32, tensorfile::DType::i32, tensorfile::DType::u64,
        tensorfile::DType::i64, tensorfile::DType::f8_e4m3, tensorfile::DType::f8_e5m2, tensorfile::DType::f16,
        tensorfile::DType::bf16, tensorfile::DType::f32, tensorfile::DType::f64})
    CHECK(scalar_type(type).has_value() == weights::is_of_models(type));
}

}  // namespace
}  // namespace hexad::modeling
