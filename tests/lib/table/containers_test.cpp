// The same rows in each container.
#include "lib/table/container.hpp"

#include <future>

#include "lib/base/file.hpp"
#include "lib/base/random.hpp"
#include "tests/lib/table/support.hpp"

using namespace hexad;
using namespace table_test;

namespace {

struct Same {
  const char* rows;
  std::vector<const char*> files;
};

// By the file of JSON lines that says what the rows are.
const std::vector<Same> kSame = {
    {"rows.jsonl",
     {"rows.json", "rows.jsonl.gz", "rows.jsonl.zst", "rows.json.gz", "rows.json.zst", "rows.parquet", "zstd.parquet",
      "stream.arrow", "file.arrow", "lz4.arrow", "zstd.arrow", "hub", "saved", "saved_splits"}},
    {"typed.jsonl", {"typed.parquet", "typed.arrow"}},
    {"flat.jsonl", {"flat.csv", "flat.tsv", "flat.csv.gz", "flat.csv.zst", "flat.tsv.gz", "flat.tsv.zst"}},
};

bool wants_arrow(const char* file) {
  const auto container = table::container_of(file);
  return !container || container->form != table::Form::json || container->packing != table::Packing::none;
}

}  // namespace

TEST_CASE("every container has the rows that JSON lines have, in their order") {
  const bool arrow = has_arrow();
  for (const Same& same : kSame) {
    const std::vector<std::string> wanted = texts(*table::open_file(data_file(same.rows)));
    REQUIRE(wanted.size() >= 2);
    for (const char* file : same.files) {
      if (wants_arrow(file) && !arrow) continue;
      CAPTURE(file);
      CHECK(texts(*table::open(data_file(file), "train")) == wanted);
    }
  }
}

TEST_CASE("a row has its place, and rows are drawn in any order") {
  if (!has_arrow()) return;
  const auto rows = table::open(data_file("hub"), "train");
  REQUIRE(rows->size() == 4);
  CHECK(rows->row(3).source == data_file("hub/data/train-00001-of-00002.parquet").string() + "[1]");
  CHECK(rows->row(0).source == data_file("hub/data/train-00000-of-00002.parquet").string() + "[0]");
  CHECK(rows->row(3).value.at("prompt") == "last");
  CHECK(table::open(data_file("hub"), "test")->row(0).value.at("prompt") == "last");
  CHECK(table::open(data_file("saved_splits"), "test")->size() == 1);
  CHECK(table::open_file(data_file("rows.jsonl.gz"))->row(1).source == data_file("rows.jsonl.gz").string() + ":2");
}

TEST_CASE("rows of large row groups are the same in any order, beside those of other files and on several threads") {
  if (!has_arrow()) return;
  const auto wanted = [](int64_t i) {
    nlohmann::ordered_json row{{"number", i}, {"list", nullptr}, {"text", std::string(i % 5, "abcdefgh"[i % 8])}};
    if (i % 11 != 0) row["list"] = std::vector<int64_t>(i % 4, i);
    return row;
  };
  const auto rows = table::open_file(data_file("large_groups.parquet"));
  const auto others = table::open_file(data_file("large_groups.parquet"));
  REQUIRE(rows->size() == 2600);
  for (int64_t i = 0; i < 2600; ++i) REQUIRE(rows->row(i).value == wanted(i));
  const std::vector<int64_t> order = random_permutation(2600, 5, 1);
  const auto draw = [&](size_t step) {
    int64_t wrong = 0;
    for (size_t k = 0; k < 400; ++k) {
      const int64_t first = order[k * step % 2600], second = order[(k * step + 1300) % 2600];
      wrong += rows->row(first).value != wanted(first);
      wrong += others->row(second).value != wanted(second);
    }
    return wrong;
  };
  CHECK(draw(1) == 0);
  auto beside = std::async(std::launch::async, draw, size_t{3});
  CHECK(draw(7) == 0);
  CHECK(beside.get() == 0);
}

TEST_CASE("shards without rows are left out, and a set of nothing else is refused") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  const auto one = [&](const std::string& suffix, const std::string& none, const std::string& some) {
    const toy::TempDir shards;
    shards.write("train-0" + suffix, none);
    SAYS(refusal([&] { table::open(shards.path(), "train"); }), "train-0" + suffix + ": holds no rows");
    shards.write("train-1" + suffix, some);
    shards.write("train-2" + suffix, none);
    const auto rows = table::open(shards.path(), "train");
    CHECK(rows->row(rows->size() - 1).source.find("train-1") != std::string::npos);
    shards.write("train-1" + suffix, none);
    SAYS(refusal([&] { table::open(shards.path(), "train"); }),
         shards.path().string() + ": not one of the 3 files of split 'train' holds rows");
  };
  one(".jsonl", "", "{\"a\": 1}\n");
  one(".jsonl", "\n \n", "{\"a\": 1}\n");
  one(".json", "[]", "[{\"a\": 1}]");
  one(".csv", "", "a\n1\n");
  one(".csv", "a\n", "a\n1\n");
  one(".parquet", read_file(data_file("refused/no_rows.parquet")), read_file(data_file("rows.parquet")));
}

TEST_CASE("a container is known by the name of its file") {
  using table::container_of;
  CHECK(container_of("a/b.jsonl.gz")->packing == table::Packing::gz);
  CHECK(container_of("b.c.tsv")->form == table::Form::tsv);
  CHECK(container_of("train-00000-of-00002.parquet")->form == table::Form::parquet);
  for (const char* other : {"rows.txt", "rows", ".gz", "rows.gz", "rows.parquet.gz", "rows.json.bz2", "csv"})
    CHECK_FALSE(container_of(other));
}
