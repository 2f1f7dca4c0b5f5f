// Files that others have, as records.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "core/data/dataset/dataset.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using namespace hexad::data;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

TEST_CASE("a data set in Parquet has the records that it has as JSON lines") {
  if (!fs::exists(fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/libhexad_arrow.so")) {
    test_report::skipped("built without Apache Arrow (tools/setup.sh)");
    return;
  }
  const char* const source = std::getenv("HEXAD_SOURCE_DIR");
  const fs::path rows = fs::path(source ? source : ".") / "tests/lib/table/data";
  const auto load = [&](const fs::path& path) {
    config::DatasetConfig config;
    config.dataset_name = "ResponseDataset";
    config.data_path = path;
    config.input_key = "prompt";
    config.output_key = "";
    return load_dataset(config).train.records;
  };
  const table::Lazy<Record> wanted = load(rows / "rows.jsonl"), got = load(rows / "hub");
  REQUIRE(got.size() == 4);
  REQUIRE(wanted.size() == got.size());
  for (int64_t i = 0; i < got.size(); ++i) {
    CHECK(got[i].messages == wanted[i].messages);
    CHECK(got[i].metadata == wanted[i].metadata);
  }
}

TEST_CASE("verl's rows are conversations with the answer in an object") {
  const toy::TempDir dir;
  config::DatasetConfig config;
  config.dataset_name = "openai_format";
  config.data_path = dir.write(
      "verl.jsonl", R"({"prompt": [{"role": "user", "content": "1+1?"}], "reward_model": {"ground_truth": "2"}})");
  config.output_key = "reward_model.ground_truth";
  config.spec = {{"chat_key", "prompt"}};
  const Record record = load_dataset(config).train.records[0];
  CHECK(record.answer == "2");
  CHECK(record.messages == Json::parse(R"([{"role": "user", "content": "1+1?"}])"));
}
