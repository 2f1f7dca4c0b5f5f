// Each format of rows in each container, as real datasets and pyarrow write them: the token ids, and which of them
// train, are TRL's (trl_rows/make.py), but for the differences that docs/data.md names.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "app/data/shown_row.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::Json;

namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int64_t>;

fs::path data_folder() { return toy::source_dir() / "tests/app/data/trl_rows"; }

const Json& expected() {
  static const Json json = Json::parse(read_file(data_folder() / "expected.json"));
  return json;
}

const rollout::ModelText& model_text(const std::string& name) {
  static std::map<std::string, rollout::ModelText> texts;
  if (const auto found = texts.find(name); found != texts.end()) return found->second;
  const Json& model = expected().at("models").at(name);
  config::TokenizerConfig tokenizer;
  tokenizer.chat_template = model.at("chat_template").get<std::string>();
  const fs::path folder = toy::source_dir() / "tests/golden/tokenizers" / model.at("tokenizer").get<std::string>();
  return texts.emplace(name, rollout::load_model_text(folder, tokenizer)).first->second;
}

struct Use {
  const char* name;
  config::Algorithm algorithm;
  const char* processor;
};
constexpr Use kUses[] = {{"grpo", config::Algorithm::grpo, "math_hf_data_processor"},
                         {"sft", config::Algorithm::sft, "sft_processor"},
                         {"dpo", config::Algorithm::dpo, "preference_processor"},
                         {"rm", config::Algorithm::rm, "preference_processor"}};

// What `hexad data show` reads of the rows, with the keys of docs/data.md that TRL's tokens want.
std::vector<dataset_view::ShownRow> shown_rows(const fs::path& file, const std::string& use, const std::string& model,
                                               int64_t most = 4096) {
  const Use& found = *std::ranges::find(kUses, use, [](const Use& known) { return std::string(known.name); });
  config::RunConfig run;
  run.algorithm = found.algorithm;
  run.policy.max_total_sequence_length = run.data.max_input_seq_length = most;
  run.data.add_bos = false;
  run.data.add_generation_prompt = true;
  config::DatasetConfig set;
  set.dataset_name = "ResponseDataset";
  set.processor = found.processor;
  set.data_path = file.string();
  run.data.train = {set};
  std::vector<dataset_view::ShownRow> rows;
  dataset_view::DataView(run, model_text(model), false).for_each([&](const auto& row) {
    rows.push_back(row);
    return true;
  });
  return rows;
}

// One text's tokens, and which of them train: "0011"; "": nobody says.
struct Tokens {
  Ids ids;
  std::string trains;
};

Tokens tokens_of(const Json& row) { return {row.at("token_ids").get<Ids>(), row.value("trains", std::string())}; }

Tokens tokens_of(const dataset_view::ShownText& text, bool masked) {
  Tokens tokens{text.token_ids, ""};
  for (const float trained : text.trains) tokens.trains += masked ? (trained != 0 ? "1" : "0") : "";
  return tokens;
}

// A difference between TRL's tokens and those here, by the name that docs/data.md has for it.
struct Difference {
  const char* name;
  std::vector<std::string> formats, uses;
  void (*apply)(Tokens& trl, const Json& model);
};

const std::vector<std::string> kTemplated = {"question_answer",
                                             "prompt_completion_messages",
                                             "completion_with_tools",
                                             "messages",
                                             "messages_tools",
                                             "messages_parts",
                                             "conversations",
                                             "share_gpt",
                                             "alpaca",
                                             "pairs_messages",
                                             "pairs_messages_implicit"};

// What the template writes behind the token that ends the last message.
void drop_end(Tokens& trl, const Json& model) {
  const Ids end = model.at("behind_end").get<Ids>();
  REQUIRE(std::ranges::equal(end, std::vector(trl.ids.end() - std::ssize(end), trl.ids.end())));
  trl.ids.resize(trl.ids.size() - end.size());
  trl.trains.resize(trl.trains.empty() ? 0 : trl.ids.size());
}

// The header of an answer, of which TRL's own template for training lets the last tokens train.
void drop_header(Tokens& trl, const Json& model) {
  const Ids header = model.at("header").get<Ids>();
  for (size_t begin = 0; begin + header.size() <= trl.ids.size(); ++begin) {
    if (!std::equal(header.begin(), header.end(), trl.ids.begin() + static_cast<std::ptrdiff_t>(begin))) continue;
    std::fill_n(trl.trains.begin() + static_cast<std::ptrdiff_t>(begin), header.size(), '0');
  }
}

const std::vector<Difference> kDifferences = {
    {"behind the end", kTemplated, {"sft", "dpo", "rm"}, drop_end},
    {"header",
     {"completion_with_tools", "messages", "messages_tools", "messages_parts", "conversations", "share_gpt"},
     {"sft"},
     drop_header},
};

// Its rows differ by where tokens are cut.
constexpr const char* kByTurns = "leading_space";

bool has(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}

// TRL's tokens with the differences of the case; `seen` counts by name where there was one.
Tokens here(Tokens trl, const Json& test_case, std::map<std::string, int>& seen) {
  for (const Difference& difference : kDifferences) {
    if (!has(difference.formats, test_case.at("format")) || !has(difference.uses, test_case.at("use"))) continue;
    const Tokens before = trl;
    difference.apply(trl, expected().at("models").at(test_case.at("model").get<std::string>()));
    seen[difference.name] += before.ids != trl.ids || before.trains != trl.trains;
  }
  return trl;
}

const std::vector<std::string> kContainers = {"rows.parquet",  "hub",          "saved",          "saved_splits",
                                              "stream.arrow",  "file.arrow",   "rows.jsonl",     "rows.json",
                                              "rows.jsonl.gz", "rows.json.gz", "rows.jsonl.zst", "rows.json.zst"};
const std::vector<std::string> kFlat = {"rows.csv",    "rows.tsv",     "rows.csv.gz",
                                        "rows.tsv.gz", "rows.csv.zst", "rows.tsv.zst"};

// Formats whose columns are texts.
const std::vector<std::string> kFlatFormats = {
    "question_answer", "prompt", "prompt_completion", "alpaca", "text", "pairs", "pairs_implicit"};

std::vector<fs::path> containers(const std::string& format) {
  std::vector<fs::path> paths;
  for (const std::string& name : kContainers) paths.push_back(data_folder() / format / name);
  if (has(kFlatFormats, format))
    for (const std::string& name : kFlat) paths.push_back(data_folder() / format / name);
  return paths;
}

bool has_arrow() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  if (fs::exists(program.parent_path().parent_path() / "lib/libhexad_arrow.so")) return true;
  test_report::skipped("built without Apache Arrow (tools/setup.sh)");
  return false;
}

void check_same(const dataset_view::ShownText& got, const Json& trl, const Json& test_case,
                std::map<std::string, int>& seen) {
  const Tokens wanted = here(tokens_of(trl), test_case, seen), have = tokens_of(got, trl.contains("trains"));
  CHECK_MESSAGE(have.ids == wanted.ids, got.text);
  CHECK_MESSAGE(have.trains == wanted.trains, got.text);
}

}  // namespace

TEST_CASE("rows of each format in each container become the token ids that TRL makes of them") {
  if (!has_arrow()) return;
  std::map<std::string, int> seen;
  for (const Json& test_case : expected().at("cases")) {
    const std::string format = test_case.at("format"), use = test_case.at("use"), model = test_case.at("model");
    if (format == kByTurns) continue;  // the next case's
    for (const fs::path& file : containers(format)) {
      INFO(file.string() << " for " << use << " with " << model);
      const Json& wanted = test_case.at("rows");
      std::vector<dataset_view::ShownRow> rows;
      REQUIRE_NOTHROW(rows = shown_rows(file, use, model));
      REQUIRE(rows.size() == wanted.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows[i].dropped == "");
        check_same(rows[i].shown, wanted[i], test_case, seen);
        if (rows[i].is_pair) check_same(rows[i].rejected, wanted[i].at("rejected"), test_case, seen);
      }
    }
  }
  for (const Difference& difference : kDifferences) CHECK_MESSAGE(seen[difference.name] > 0, difference.name);
}

TEST_CASE("an answer that begins with a space has the tokens that it has behind the header of a rollout") {
  if (!has_arrow()) return;
  const auto& cases = expected().at("cases");
  const Json& trl = *std::ranges::find_if(cases, [](const Json& one) { return one.at("format") == kByTurns; });
  const Json& model = expected().at("models").at(trl.at("model").get<std::string>());
  const text::Tokenizer& tokenizer = *model_text(trl.at("model")).tokenizer;
  const std::string header = tokenizer.decode(model.at("header").get<std::vector<int32_t>>(), false);
  for (const fs::path& file : containers(kByTurns)) {
    INFO(file.string());
    const auto rows = shown_rows(file, trl.at("use"), trl.at("model"));
    REQUIRE(rows.size() == trl.at("rows").size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string whole = tokenizer.decode(trl.at("rows")[i].at("token_ids").get<std::vector<int32_t>>(), false);
      const auto& [text, ids, trains, trained_text] = rows[i].shown;
      CHECK(whole == text + "\n");
      const size_t begin = text.rfind(header) + header.size();
      std::vector<int32_t> turns = tokenizer.encode(text.substr(0, begin), false);
      const size_t prompt = turns.size();
      for (const int32_t id : tokenizer.encode(text.substr(begin), false)) turns.push_back(id);
      CHECK(ids == Ids(turns.begin(), turns.end()));
      CHECK(std::ranges::count(trains, 1.0f) == std::ssize(ids) - static_cast<std::ptrdiff_t>(prompt));
      CHECK(ids.size() + 1 != trl.at("rows")[i].at("token_ids").size());  // one token of TRL's is both's
    }
  }
}

TEST_CASE("what TRL cuts at max_length is dropped") {
  if (!has_arrow()) return;
  const Json& cut = expected().at("cut");
  const int64_t most = cut.at("max_length");
  const std::string format = cut.at("format"), use = cut.at("use"), model = cut.at("model");
  const auto rows = shown_rows(data_folder() / format / "rows.parquet", use, model, most);
  REQUIRE(rows.size() == cut.at("rows").size());
  int64_t dropped = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    Ids ids = rows[i].shown.token_ids;
    const bool is_long = std::ssize(ids) > most;
    CHECK(rows[i].dropped.empty() == !is_long);
    dropped += is_long;
    ids.resize(std::min<size_t>(ids.size(), static_cast<size_t>(most)));
    CHECK(ids == cut.at("rows")[i].at("token_ids").get<Ids>());
  }
  CHECK(dropped > 0);
  CHECK(dropped < std::ssize(rows));
}

TEST_CASE("docs/data.md names each difference from TRL") {
  const std::string page = read_file(toy::source_dir() / "docs/data.md");
  std::vector<std::string> names = {"all messages", "turns",     "parts",
                                    "names",        "questions", "too long"};  // make.py's, and above
  for (const Difference& difference : kDifferences) names.push_back(difference.name);
  for (const std::string& name : names) CHECK_MESSAGE(contains(page, fmt::format("\n| {} | ", name)), name);
}

TEST_CASE("rows of no format that is read are refused alike in each container") {
  if (!has_arrow()) return;
  struct Refused {
    const char *folder, *use, *message;
  };
  const std::vector<Refused> table = {
      {"unpaired", "sft", "rows of unpaired preference (prompt, completion, label) are not read: "},
      {"unpaired", "dpo", "rows of unpaired preference (prompt, completion, label) are not read: "},
      {"unpaired", "grpo", "rows of unpaired preference (prompt, completion, label) are not read: "},
      {"stepwise", "sft", "rows of stepwise supervision (prompt, completions, labels) are not read: "},
      {"stepwise", "rm", "rows of stepwise supervision (prompt, completions, labels) are not read: "},
      {"two_prompts", "grpo", "rows have prompt and question, and each could be what the model is to read. Two keys"},
      {"two_answers", "grpo", "rows have solution and answer, and each could be the answer. Two keys"},
      {"messages_and_prompt", "sft", "rows have messages and prompt, and each could be what the model is to read."},
      {"empty_cell", "sft", "field 'completion' is null, want text"},
  };
  for (const Refused& refused : table) {
    for (const fs::directory_entry& file : fs::directory_iterator(data_folder() / "refused" / refused.folder)) {
      INFO(file.path().string());
      CHECK_THROWS_WITH_AS(shown_rows(file.path(), refused.use, "qwen"), doctest::Contains(refused.message), Error);
    }
  }
}
