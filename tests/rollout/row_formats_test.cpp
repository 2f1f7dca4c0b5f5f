// Rows of each format that TRL reads, as token ids: those that TRL makes of them (data/make_trl_rows.py).
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/data/dataset/dataset.hpp"
#include "core/rollout/model_text.hpp"
#include "lib/base/error.hpp"

using namespace hexad;
using Json = nlohmann::ordered_json;
using Ids = std::vector<int64_t>;
namespace fs = std::filesystem;

namespace {

fs::path tests() { return fs::path(std::getenv("HEXAD_SOURCE_DIR")) / "tests"; }

config::DatasetConfig dataset(const Json& row, const std::string& use) {
  const fs::path file = fs::temp_directory_path() / fmt::format("hexad-row-{}.jsonl", ::getpid());
  std::ofstream(file) << row.dump() << '\n';
  config::DatasetConfig config;
  config.dataset_name = "ResponseDataset";
  config.data_path = file.string();
  config.processor = use == "pairs"           ? "preference_processor"
                     : use == "conversations" ? "sft_processor"
                                              : "math_hf_data_processor";
  return config;
}

}  // namespace

TEST_CASE("rows of TRL's formats become TRL's token ids") {
  std::ifstream in(tests() / "rollout/data/trl_rows.json");
  const Json golden = Json::parse(in);
  REQUIRE(golden.at("cases").size() > 30);
  for (const Json& wanted : golden.at("cases")) {
    INFO(wanted.at("name").get<std::string>());
    const std::string folder = wanted.at("tokenizer"), use = wanted.at("use");
    config::TokenizerConfig tokenizer;
    tokenizer.chat_template = golden.at("templates").at(folder).get<std::string>();
    const rollout::ModelText text = rollout::load_model_text(tests() / "golden/tokenizers" / folder, tokenizer);
    const config::DatasetConfig config = dataset(wanted.at("row"), use);
    const data::DatasetSplit split = data::load_dataset(config);
    CHECK(!split.train.format.empty());
    const data::Record& record = split.train.records[0];
    data::ProcessorOptions options;
    options.processor = config.processor;
    options.add_generation_prompt = true;  // as TRL has it: what is written before an answer is none
    options.bos_token = text.bos_token, options.eos_token = text.eos_token;
    if (use == "pairs") {
      const data::Pair pair = data::process_pair(record, 0, "task", options, text.tools());
      CHECK(pair.chosen.token_ids == wanted.at("chosen").get<Ids>());
      CHECK(pair.rejected.token_ids == wanted.at("rejected").get<Ids>());
      continue;
    }
    const data::Datum datum = data::process(record, 0, "task", options, text.tools());
    CHECK(datum.token_ids == wanted.at("ids").get<Ids>());
    if (!wanted.contains("completion")) continue;
    const auto first = std::ranges::find(datum.token_mask, 1.0f);
    CHECK(first - datum.token_mask.begin() == wanted.at("completion").get<int64_t>());
    CHECK(datum.token_mask.back() == 1);
  }
}
