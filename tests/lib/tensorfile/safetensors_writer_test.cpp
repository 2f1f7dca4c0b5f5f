#include "lib/tensorfile/safetensors_writer.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lib/base/error.hpp"
#include "tests/lib/tensorfile/three_tensors.hpp"

using namespace hexad;
using namespace hexad::tensorfile;
using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

namespace {

const std::vector<TensorSpec> kOne = {{"a", DType::f32, {2}}};

template <typename Writer>
void check_wants_what_was_announced(Writer& writer) {
  CHECK_THROWS_WITH_AS(writer.write("x", bytes_of({1, 2})), doctest::Contains("tensor \"x\" was not announced"), Error);
  CHECK_THROWS_WITH_AS(writer.write("a", bytes_of({1})), doctest::Contains("tensor \"a\": got 4 bytes, wanted 8"),
                       Error);
  CHECK_THROWS_WITH_AS(writer.finish(), doctest::Contains("tensor \"a\" was announced but not written"), Error);
  CHECK(writer.awaited("a").shape == std::vector<int64_t>{2});
  writer.write("a", bytes_of({1, 2}));
  CHECK_THROWS_WITH_AS(writer.write("a", bytes_of({1, 2})), doctest::Contains("tensor \"a\" is written twice"), Error);
  CHECK_THROWS_WITH_AS(writer.awaited("a"), doctest::Contains("tensor \"a\" is written twice"), Error);
  writer.finish();
}

}  // namespace

TEST_CASE("a writer wants exactly what was announced") {
  TempFolder folder;
  SafetensorsWriter file(folder / "m.safetensors", kOne);
  check_wants_what_was_announced(file);
  ShardedWriter model(folder / "model", kOne);
  check_wants_what_was_announced(model);
  const std::vector<TensorSpec> twice = {{"a", DType::f32, {2}}, {"a", DType::f32, {2}}};
  CHECK_THROWS_WITH_AS(SafetensorsWriter(folder / "t.safetensors", twice),
                       doctest::Contains("tensor \"a\" is listed twice"), Error);
  CHECK_THROWS_WITH_AS(ShardedWriter(folder / "twice", twice, 8), doctest::Contains("tensor \"a\" is listed twice"),
                       Error);
  CHECK(names_in(folder.path()) == Names{"m.safetensors", "model", "twice"});
  CHECK(names_in(folder / "twice").empty());
}

TEST_CASE("a file that cannot be written, a folder that cannot be made, a full disk") {
  TempFolder folder;
  CHECK_THROWS_WITH_AS(SafetensorsWriter(folder / "no/m.safetensors", {}),
                       doctest::Contains("no/m.safetensors: cannot be written: No such file"), Error);
  folder.write("file", "");
  CHECK_THROWS_WITH_AS(ShardedWriter(folder / "file/model", kOne),
                       doctest::Contains("file/model: cannot be made: Not a directory"), Error);
  std::filesystem::create_symlink("/dev/full", folder / ".m.safetensors.growing");
  CHECK_THROWS_WITH_AS(SafetensorsWriter(folder / "m.safetensors", kThree),
                       doctest::Contains("m.safetensors: cannot be written: No space left"), Error);
  CHECK(names_in(folder.path()) == Names{"file"});
}

TEST_CASE("until it is finished a save has temporary names, and an abandoned one leaves nothing") {
  TempFolder folder;
  ShardedWriter first(folder.path(), kThree);
  CHECK(names_in(folder.path()) == Names{".model.safetensors.growing"});
  write_three(first);
  {
    ShardedWriter abandoned(folder.path(), kThree, 16);
    abandoned.write("a", bytes_of({9, 9}));
    CHECK(names_in(folder.path()).size() == 4);
    check_three(Safetensors::open(folder.path()));
    CHECK_THROWS_AS(abandoned.finish(), Error);
    check_three(Safetensors::open(folder.path()));
  }
  CHECK(names_in(folder.path()) == Names{"model.safetensors"});
  check_three(Safetensors::open(folder.path()));
}

TEST_CASE("a save replaces the files of an earlier one, and no others") {
  TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("modelling.safetensors", "another's");
  ShardedWriter shards(folder.path(), kThree, 16);
  write_three(shards);
  CHECK(names_in(folder.path()).size() == 6);
  ShardedWriter fewer(folder.path(), kThree, 24);
  write_three(fewer);
  CHECK(names_in(folder.path()) == Names{"config.json", "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                                         "modelling.safetensors"});
  check_three(Safetensors::open(folder.path()));
  ShardedWriter single(folder.path(), kThree);
  write_three(single);
  CHECK(names_in(folder.path()) == Names{"config.json", "model.safetensors", "modelling.safetensors"});
  check_three(Safetensors::open(folder.path()));
}

TEST_CASE("a model that fits is one file; one that does not, shards with an index") {
  TempFolder folder;
  SUBCASE("one file") {
    ShardedWriter writer(folder.path(), kThree);
    write_three(writer);
    CHECK(names_in(folder.path()) == Names{"model.safetensors"});
  }
  SUBCASE("shards of at most 16 bytes") {
    ShardedWriter writer(folder.path(), kThree, 16);
    write_three(writer);
    CHECK(names_in(folder.path()) == Names{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                           "model-00003-of-00003.safetensors", "model.safetensors.index.json"});
    const Json index = Json::parse(read_file(folder / "model.safetensors.index.json"));
    CHECK(index["metadata"]["total_size"] == 28);
    CHECK(index["weight_map"] == Json{{"a", "model-00001-of-00003.safetensors"},
                                      {"b", "model-00002-of-00003.safetensors"},
                                      {"c", "model-00003-of-00003.safetensors"}});
    check_three(Safetensors::open(folder / "model.safetensors.index.json"));
  }
  SUBCASE("a tensor larger than a shard has one of its own") {
    ShardedWriter writer(folder.path(), kThree, 10);
    write_three(writer);
    CHECK(names_in(folder.path()).size() == 4);
  }
  SUBCASE("what fits together stays together") {
    ShardedWriter writer(folder.path(), kThree, 24);
    write_three(writer);
    CHECK(names_in(folder.path()).size() == 3);
  }
  SUBCASE("a model of no tensors is one file") {
    ShardedWriter writer(folder / "none", {});
    writer.finish();
    CHECK(Safetensors::open(folder / "none").tensors().empty());
    ShardedWriter three(folder.path(), kThree);
    write_three(three);
  }
  check_three(Safetensors::open(folder.path()));
}
