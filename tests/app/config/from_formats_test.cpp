// Arguments of TRL's and of verl's with rows of every type that their trainers take: what is written of them is valid
// as it is, and the rows are read as the trainer reads them. TRL's page "Dataset formats and types" has the types.
#include <doctest/doctest.h>

#include "app/doctor/build.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/program.hpp"

using plugin_test::contains;
using plugin_test::Json;
using toy::Ended;
using toy::TempDir;

namespace {

// `data: 2 rows, FORMAT`, and of a row the text, which tokens train, and the expected answer or the worse text.
struct Case {
  const char* row;
  const char* format;
  const char* text;
  const char* trains;
  const char* other = "";
};

#define USER(text) R"({"role": "user", "content": ")" text R"("})"
#define ASSISTANT(text) R"({"role": "assistant", "content": ")" text R"("})"

const std::vector<Case> kGrpo = {
    {R"({"prompt": "ab"})", "prompt as text, without chat template", "ab", "[0,0]"},
    {R"({"prompt": "ab", "solution": "c"})", "prompt + solution as text, without chat template", "ab", "[0,0]", "c"},
    {R"({"prompt": [)" USER("ab") "]}", "conversational prompt", "<question>ab<answer>", "[0,0,0,0]"},
    {R"({"prompt": [)" USER("ab") R"(], "solution": "c"})", "conversational prompt + solution", "<question>ab<answer>",
     "[0,0,0,0]", "c"},
    {R"({"prompt": "ab", "completion": "c"})", "prompt + completion as text, without chat template", "ab", "[0,0]",
     "c"},
    {R"({"prompt": [)" USER("ab") R"(], "completion": [)" ASSISTANT("c") "]}", "conversational prompt + completion",
     "<question>ab<answer>", "[0,0,0,0]", "c"},
    {R"({"prompt": "ab", "chosen": "c", "rejected": "d"})", "prompt as text, without chat template", "ab", "[0,0]"},
};

const std::vector<Case> kSft = {
    {R"({"text": "ab"})", "text, without chat template", "ab<end>", "[1,1,1]"},
    {R"({"messages": [)" USER("ab") "," ASSISTANT("c") "]}", "messages", "<question>ab<question>c<end>",
     "[0,0,0,1,1,1]", "c"},
    {R"({"prompt": "ab", "completion": "c"})", "prompt + completion as text, without chat template", "abc<end>",
     "[0,0,1,1]", "c"},
    {R"({"prompt": [)" USER("ab") R"(], "completion": [)" ASSISTANT("c") "]}", "conversational prompt + completion",
     "<question>ab<question>c<end>", "[0,0,0,1,1,1]", "c"},
};

const std::vector<Case> kPairs = {
    {R"({"prompt": "a", "chosen": "b", "rejected": "cd"})", "prompt + chosen + rejected as text, without chat template",
     "ab<end>", "[0,1,1]", "acd<end>"},
    {R"({"chosen": "ab", "rejected": "acd"})", "chosen + rejected, prompt implicit as text, without chat template",
     "ab<end>", "[0,1,1]", "acd<end>"},
    {R"({"prompt": [)" USER("a") R"(], "chosen": [)" ASSISTANT("b") R"(], "rejected": [)" ASSISTANT("cd") "]}",
     "conversational prompt + chosen + rejected", "<question>a<question>b<end>", "[0,0,1,1,1]",
     "<question>a<question>cd<end>"},
    {R"({"chosen": [)" USER("a") "," ASSISTANT("b") R"(], "rejected": [)" USER("a") "," ASSISTANT("cd") "]}",
     "conversational chosen + rejected, prompt implicit", "<question>a<question>b<end>", "[0,0,1,1,1]",
     "<question>a<question>cd<end>"},
};

std::string model() { return toy::fs::absolute(toy::source_dir() / "configs/quickstart_model").string(); }

// `hexad config from-trl` (or from-verl) of these arguments and two such rows.
std::string written(const TempDir& dir, const std::string& command, const std::string& arguments,
                    const std::string& row, std::vector<std::string> settings) {
  const std::string rows = dir.write("rows.jsonl", row + "\n" + row + "\n").string(), out = (dir / "run.yaml").string();
  for (std::string& setting : settings)
    if (setting.ends_with('=')) setting += rows;
  settings.insert(settings.begin(), {"config", command, dir.write("args.json", arguments).string(), "--out", out});
  const Ended from = toy::run(settings);
  CHECK_MESSAGE(from.code == 0, from.err);
  return out;
}

void check_rows(const std::string& config, const Case& wanted) {
  INFO(wanted.row);
  const Ended check = toy::run({"config", "check", config});
  CHECK_MESSAGE(check.code == 0, check.out << toy::read_text(config));
  const Ended page = toy::run({"data", "show", config, "--rows", "1"});
  CHECK_MESSAGE(contains(page.out, fmt::format("data: 2 rows, {}\n", wanted.format)), page.out << page.err);
  const Ended shown = toy::run({"data", "show", config, "--json"});
  REQUIRE_MESSAGE(shown.code == 0, shown.err);
  const Json row = Json::parse(shown.out.substr(0, shown.out.find('\n')));
  CAPTURE(row.dump());
  CHECK(row.value("text", "") == wanted.text);
  CHECK(row.value("trains", Json()).dump() == wanted.trains);
  CHECK((row.contains("rejected") ? row.at("rejected").value("text", "") : row.value("expected", "")) == wanted.other);
}

// Whether the plugins are there that such a config names.
bool has_backends() {
  if (!hexad::doctor::this_build("").libtorch.empty()) return true;
  test_report::skipped("without LibTorch there is no backend that a translated config could name");
  return false;
}

const char* const kSizes = R"("per_device_train_batch_size": 2, "gradient_accumulation_steps": 1, "bf16": false)";

std::string trl_config(const TempDir& dir, const std::string& arguments, const std::string& row) {
  return written(dir, "from-trl", fmt::format("{{{}, {}}}", arguments, kSizes), row,
                 {"model_name_or_path=" + model(), "dataset_name="});
}

struct Trainer {
  const char* arguments;
  const std::vector<Case>& cases;
};
const Trainer kTrainers[] = {
    {R"("num_generations": 2, "max_completion_length": 4, "beta": 0.0)", kGrpo},
    {R"("packing": false, "max_length": 16)", kSft},
    {R"("beta": 0.1, "max_length": 16)", kPairs},
    {R"("center_rewards_coefficient": null, "max_length": 16)", kPairs},
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // check libraries must answer in time

TEST_CASE("each trainer of TRL's with each type of rows that it takes is written as a config that is valid") {
  if (!has_backends()) return;
  for (const Trainer& trainer : kTrainers) {
    CAPTURE(trainer.arguments);
    for (const Case& wanted : trainer.cases) {
      const TempDir dir;
      check_rows(trl_config(dir, trainer.arguments, wanted.row), wanted);
    }
  }
}

TEST_CASE("types of TRL's page that no trainer here takes are refused by their names") {
  if (!has_backends()) return;
  const auto refused = [](const char* arguments, const char* row, const char* words) {
    const TempDir dir;
    const Ended check = toy::run({"config", "check", trl_config(dir, arguments, row)});
    CHECK(check.code == 2);
    CHECK_MESSAGE(contains(check.out, words), check.out);
  };
  const char* unpaired = R"({"prompt": "a", "completion": "b", "label": true})";
  const char* stepwise = R"({"prompt": "a", "completions": ["b", "c"], "labels": [true, false]})";
  for (const Trainer& trainer : kTrainers) {
    refused(trainer.arguments, unpaired, "rows of unpaired preference (prompt, completion, label) are not read");
    refused(trainer.arguments, stepwise, "rows of stepwise supervision (prompt, completions, labels) are not read");
  }
}

TEST_CASE("verl's rows are read as they are, by the column that prompt_key names") {
  if (!has_backends()) return;
  const std::string arguments = R"({"data": {"train_batch_size": 2, "max_prompt_length": 12, "max_response_length": 4},
    "actor_rollout_ref": {"model": {"path": ")" +
                                model() + R"("}, "actor": {"ppo_mini_batch_size": 2,
      "fsdp_config": {"dtype": "float32"}}, "rollout": {"n": 2, "tensor_model_parallel_size": 1}},
    "algorithm": {"adv_estimator": "grpo"}, "trainer": {"n_gpus_per_node": 1, "logger": ["console"]}})";
  for (const std::string key : {"prompt", "question"}) {
    CAPTURE(key);
    const TempDir dir;
    const std::string row =
        R"({"data_source": "x", ")" + key +
        R"(": [)" USER("ab") R"(], "ability": "y", "reward_model": {"style": "rule", )"
                             R"("ground_truth": "c"}, "extra_info": {"answer": "long", "index": 0}, "answer": "d"})";
    const std::string config = written(dir, "from-verl", arguments, row,
                                       {"data.prompt_key=" + key, "data.val_files=null", "data.train_files="});
    const Ended check = toy::run({"config", "check", config});
    CHECK_MESSAGE(check.code == 0, check.out << toy::read_text(config));
    const Ended shown = toy::run({"data", "show", config, "--json"});
    REQUIRE_MESSAGE(shown.code == 0, shown.err);
    const Json first = Json::parse(shown.out.substr(0, shown.out.find('\n')));
    CHECK(first.value("text", "") == "<question>ab<answer>");
    CHECK(first.value("expected", "") == "c");
  }
}

TEST_SUITE_END();
