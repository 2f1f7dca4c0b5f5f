// Keys of data by what comes of them: the prompts of a GRPO run, or the examples of a supervised one.
#include "core/algorithm/supervised/examples.hpp"
#include "core/config/check.hpp"
#include "core/rollout/prompts.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using Json = nlohmann::ordered_json;

namespace {

// Of a dataset with the keys `set` besides, `key: one` and `key: other` make other prompts. DIR: the folder below.
struct DataCase {
  std::string key, one, other, set;
};

// One token a byte; a message is role:content, and tools stand before the first.
data::TextTools bytes() {
  data::TextTools tools;
  tools.encode = [](std::string_view text) { return std::vector<int64_t>(text.begin(), text.end()); };
  tools.render = [](const Json& messages, const data::RenderOptions& options) {
    std::string text = options.tools.is_null() ? "" : options.tools.dump();
    for (const Json& message : messages)
      text += message.at("role").get<std::string>() + ":" + message.value("content", "") + ";";
    return text;
  };
  return tools;
}

std::string text_of(const data::Datum& datum) {
  return fmt::format("{} -> {} [{} {} {} {}]\n", datum.text, datum.answer, datum.env_name, datum.metadata.dump(),
                     datum.task_name, datum.loss_multiplier);
}

std::string text_of(const data::Batch& batch) {
  std::string text;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto ids = batch.row<int64_t>("input_ids", i);
    const auto mask = batch.row<float>("token_mask", i);
    for (size_t t = 0; t < ids.size(); ++t) text += fmt::format("{}{} ", ids[t], mask[t] != 0 ? "!" : "");
    text += "\n";
  }
  return text;
}

// All prompts of an epoch in their order, and those of validation.
std::string prompts_of(const config::RunConfig& run) {
  rollout::Prompts prompts(run, bytes());
  std::string text;
  for (auto batch = prompts.next(); !batch.empty(); batch = prompts.next()) text += text_of(*batch.at(0));
  text += "validation:\n";
  for (const data::SharedDatum& datum : prompts.validation().prompts) text += text_of(*datum);
  return text;
}

std::string examples_of(const config::RunConfig& run) {
  const rollout::ModelText text = rollout::load_model_text(run.policy.model_name, run.policy.tokenizer);
  algorithm::Examples examples(run, text);
  std::string all;
  for (auto batch = examples.next(); batch.size() > 0; batch = examples.next()) all += text_of(batch);
  all += "validation:\n";
  for (const data::Batch& batch : examples.validation()) all += text_of(batch);
  return all;
}

struct Files : toy::TempDir {
  Files() {
    std::string rows, chats;
    for (int i = 0; i < 8; ++i) {
      const std::string letter(1, static_cast<char>('a' + i));
      rows += Json{{"input", letter},   {"output", letter + "b"},  {"q", letter + "c"}, {"prompt", letter},
                   {"p", letter + "d"}, {"chosen", letter + "be"}, {"c", letter + "e"}, {"a", letter + "f"},
                   {"rejected", "g"},   {"r", letter + "h"}}
                  .dump() +
              "\n";
      const auto talk = [&](const std::string& text) {
        return Json::array({Json{{"role", "user"}, {"content", text}}, Json{{"role", "assistant"}, {"content", letter}},
                            Json{{"role", "user"}, {"content", letter}},
                            Json{{"role", "assistant"}, {"content", "a"}}});
      };
      const auto tool = [](const char* name) { return Json::array({Json{{"name", name}}}); };
      chats += Json{{"messages", talk("b")},
                    {"turns", talk("c")},
                    {"persona", "Be kind."},
                    {"tools", tool("f")},
                    {"more", tool("g")}}
                   .dump() +
               "\n";
    }
    const std::string some = rows.substr(0, rows.find("\n{\"input\":\"g\"") + 1);
    write("rows.jsonl", rows), write("some.jsonl", some), write("chats.jsonl", chats);
    write("folder/train.jsonl", rows), write("folder/test.jsonl", some), write("folder/hard/train.jsonl", some);
    write("solve.txt", "Solve {}"), write("kind.txt", "Be kind.");
  }
};

std::string filled(std::string text, const Files& files) {
  for (size_t at; (at = text.find("DIR")) != text.npos;) text.replace(at, 3, files.path().string());
  return text;
}

// The keys of each algorithm's runs that the tests have in common; `data`: the section.
std::string made_of(const std::string& algorithm, const std::string& data, const Files& files) {
  const std::string head = algorithm == "grpo"
                               ? "grpo: {num_prompts_per_step: 1}\n"
                               : algorithm + ": {max_num_epochs: 1, max_num_steps: -1, val_global_batch_size: 1}\n";
  // The model's own template writes no generation prompt before an answer.
  const std::string tokenizer = algorithm == "sft"
                                    ? R"(, tokenizer: {chat_template: "{% for m in messages %})"
                                      R"({{ '<answer>' if m.role == 'assistant' else '<question>' }})"
                                      R"({{ m.content }}{% endfor %}{{ '<answer>' if add_generation_prompt }}"})"
                                    : "";
  const auto file = files.write(
      "run.yaml", filled(head + "policy: {model_name: " + (toy::source_dir() / "configs/quickstart_model").string() +
                             ", train_global_batch_size: 1, train_micro_batch_size: 1" + tokenizer + "}\n" +
                             "data: {shuffle: false, " + data + "}\n",
                         files));
  const config::RunConfig run = config::run_config(config::resolve(file, {}));
  return run.algorithm == config::Algorithm::grpo ? prompts_of(run) : examples_of(run);
}

// `section` has the dataset's keys at its @.
void check_each(const std::string& algorithm, const std::string& section, const std::vector<DataCase>& rows) {
  const Files files;
  for (const DataCase& row : rows) {
    const auto with = [&](const std::string& value) {
      std::string data = section;
      data.replace(data.find('@'), 1, row.key + ": " + value + (row.set.empty() ? "" : ", " + row.set));
      return made_of(algorithm, data, files);
    };
    CHECK_MESSAGE((with(row.one) != with(row.other)), section << ": " << row.key);
  }
}

// Of one dataset, wherever it stands.
const std::string kRows = "dataset_name: ResponseDataset, data_path: DIR/rows.jsonl",
                  kFolder = "dataset_name: ResponseDataset, data_path: DIR/folder",
                  kChats = "dataset_name: openai_format, data_path: DIR/chats.jsonl";
const std::vector<DataCase> kFlat = {{"data_path", "DIR/rows.jsonl", "DIR/some.jsonl", "dataset_name: ResponseDataset"},
                                     {"input_key", "input", "q", kRows},
                                     {"output_key", "output", "a", kRows},
                                     {"split", "train", "test", kFolder},
                                     {"prompt_file", "null", "DIR/solve.txt", kRows},
                                     {"system_prompt_file", "null", "DIR/kind.txt", kRows},
                                     {"env_name", "math", "exact_answer", kRows},
                                     {"repeat", "1", "2", kRows}};
const std::vector<DataCase> kAnywhere = {
    {"dataset_name", "ResponseDataset", "BinaryPreferenceDataset", "data_path: DIR/rows.jsonl"},
    {"subset", "null", "hard", kFolder},
    {"split_validation_size", "2", "3", kRows},
    {"seed", "1", "2", kRows + ", split_validation_size: 2"},
    {"max_samples", "8", "5", kRows},
    {"chat_key", "messages", "turns", kChats},
    {"system_key", "null", "persona", kChats},
    {"system_prompt", "null", "Be brief.", kChats},
    {"tool_key", "tools", "more", kChats}};
const std::vector<DataCase> kGenerated = {
    {"size", "4", "5", "dataset_name: arithmetic, held_out: 0"},
    {"validation_size", "4", "5", "dataset_name: arithmetic, size: 4"},
    {"held_out", "0.2", "0.5", "dataset_name: arithmetic, size: 40, validation_size: 4"},
    {"question", "'What is {0} {1} {2}?'", "'{0} {1} {2}'", "dataset_name: arithmetic, size: 4"},
    {"operators", "[+]", "[-]", "dataset_name: arithmetic, size: 4"},
    {"min_operand", "0", "50", "dataset_name: arithmetic, size: 4"},
    {"max_operand", "99", "50", "dataset_name: arithmetic, size: 4"},
    {"kind", "reverse", "sort_digits", "dataset_name: puzzle, size: 4"},
    {"length", "3", "4", "dataset_name: puzzle, kind: reverse, size: 4"},
    {"alphabet", "abcdefgh", "ijklmnop", "dataset_name: puzzle, kind: reverse, size: 4"},
    {"shuffle_moves", "20", "2", "dataset_name: sliding_puzzle, length: 3, size: 2, held_out: 0"}};
const std::vector<DataCase> kPairs = {
    {"prompt_key", "prompt", "p", "dataset_name: BinaryPreferenceDataset, data_path: DIR/rows.jsonl"},
    {"chosen_key", "chosen", "c", "dataset_name: BinaryPreferenceDataset, data_path: DIR/rows.jsonl"},
    {"rejected_key", "rejected", "r", "dataset_name: BinaryPreferenceDataset, data_path: DIR/rows.jsonl"}};

}  // namespace

TEST_CASE("each key of a dataset makes other prompts or examples: data.train") {
  const std::string section = "train: {@}";
  for (const auto& rows : {kFlat, kAnywhere, kGenerated}) check_each("grpo", section, rows);
  check_each("dpo", section, kPairs);
}

TEST_CASE("each key of a dataset makes other prompts or examples: data.validation") {
  const std::string section = "train: {dataset_name: arithmetic, size: 4}, validation: {@}";
  for (const auto& rows : {kFlat, kAnywhere, kGenerated}) check_each("grpo", section, rows);
  check_each("dpo", "train: {dataset_name: BinaryPreferenceDataset, data_path: DIR/rows.jsonl}, validation: {@}",
             kPairs);
}

TEST_CASE("each key of a dataset makes other prompts or examples: data.default") {
  const std::string section = "train: {}, default: {@}";
  for (const auto& rows : {kFlat, kAnywhere}) check_each("grpo", section, rows);
  check_each("dpo", section, kPairs);
}

TEST_CASE("each key of a dataset makes other prompts or examples: data of NeMo-RL 0.3") {
  check_each("grpo", "@", kFlat);
}

TEST_CASE("keys of conversations and of long prompts make other examples or prompts") {
  check_each("grpo", "@, train: {" + kRows + "}", {{"max_input_seq_length", "100", "3", ""}});
  const std::string chats = "@, train: {" + kChats + "}";
  check_each("sft", chats, {{"add_eos", "false", "true", ""}, {"add_generation_prompt", "false", "true", ""}});
}
