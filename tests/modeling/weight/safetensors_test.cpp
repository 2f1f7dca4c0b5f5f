// Reader and writer: round trips, shards, slices, and what is said about broken files.
#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "modeling/error.hpp"
#include "modeling/weight/safetensors_reader.hpp"
#include "modeling/weight/safetensors_writer.hpp"
#include "tests/modeling/support/temporary_dir.hpp"

namespace hexad::modeling {
namespace {

using Weights = std::map<std::string, at::Tensor>;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

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
  CHECK_THROWS_WITH_AS(writer.write("x", at::zeros({2})), (where + ": tensor 'x' was not announced").c_str(), Error);
  CHECK_THROWS_WITH_AS(writer.write("a", at::zeros({3})), (where + ": tensor 'a' has shape [3], wanted [2]").c_str(),
                       Error);
  writer.write("a", at::full({2}, 1.5, at::kFloat));
  CHECK_THROWS_WITH_AS(writer.write("a", at::zeros({2})), (where + ": tensor 'a' is written twice").c_str(), Error);
  CHECK_THROWS_WITH_AS(writer.finish(), (where + ": tensor 'b' was never written").c_str(), Error);
  writer.write("b", at::zeros({1}));
  writer.finish();
  CHECK(SafetensorsReader(dir.path()).tensor("a").equal(at::full({2}, 1.5, at::kBFloat16)));
}

TEST_CASE("an abandoned save leaves the earlier one and no litter") {
  const TemporaryDir dir;
  const Weights weights = some_weights();
  save(dir.path(), weights);
  {
    SafetensorsWriter writer(dir.path(), {{"a", {2}, at::kFloat}});
    writer.write("a", at::zeros({2}));
  }
  check_same(SafetensorsReader(dir.path()), weights);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("broken files are refused with their reason") {
  const TemporaryDir dir;
  const std::string file = (dir / "model.safetensors").string();
  check_refused(dir.path(), dir.path().string() + ": found neither model.safetensors nor model.safetensors.index.json");
  check_refused(file, "cannot open " + file + ": No such file or directory");
  save(dir.path(), some_weights());
  const std::string content = read_file(file);

  write_file(file, content.substr(0, 5));
  check_refused(file, file + ": file is truncated: 5 bytes, a safetensors header needs at least 8");
  write_file(file, content.substr(0, 60));
  CHECK_THROWS_AS(SafetensorsReader{file}, Error);
  write_file(file, content.substr(0, content.size() - 30));
  try {
    SafetensorsReader reader(file);
    FAIL("a truncated file was accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("file is truncated: the tensor ends at byte") != std::string::npos);
  }
  write_file(file, "not safetensors at all");
  CHECK_THROWS_AS(SafetensorsReader{file}, Error);

  const auto header = [&](const std::string& json) {
    const uint64_t length = json.size();
    write_file(file, std::string(reinterpret_cast<const char*>(&length), 8) + json + std::string(8, '\0'));
  };
  header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})");
  check_refused(file, file + ": a: 8 bytes are stored, but its shape [3] and dtype F32 need 12");
  header(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})");
  check_refused(file, file + ": a: dtype F8_E4M3 is not supported");
  header(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,8]}})");
  check_refused(file, file + ": a: impossible shape");
  header(R"({"a":{"dtype":"F32","shape":[2]}})");
  CHECK_THROWS_AS(SafetensorsReader{file}, Error);
}

TEST_CASE("an index that its shards do not fulfil is refused") {
  const TemporaryDir dir;
  save(dir.path(), some_weights(), 30);
  const std::string shard = (dir / "model-00003-of-00003.safetensors").string();
  std::filesystem::copy_file(dir / "model-00001-of-00003.safetensors", shard,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_THROWS_AS(SafetensorsReader{dir.path()}, Error);
  std::filesystem::remove(shard);
  check_refused(dir.path(), "cannot open " + shard + ": No such file or directory");
  write_file(dir / "model.safetensors.index.json", R"({"weight_map":{"a":"../a.safetensors"}})");
  check_refused(dir.path(),
                (dir / "model.safetensors.index.json").string() + ": '../a.safetensors' is not a file name");
}

}  // namespace
}  // namespace hexad::modeling
