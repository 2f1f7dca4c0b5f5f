// hexad report --compare on a terminal.
#include "app/report/comparison.hpp"

#include <limits>
#include <sstream>

#include "lib/text/text_width.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad::report;
using plugin_test::contains;

namespace {

RunRecord record(const std::string& name, double reward, const std::map<std::string, std::string>& settings) {
  RunRecord run;
  run.directory = name;
  run.folders = {{.directory = name}};
  for (int64_t step = 1; step <= 20; ++step) {
    run.steps.push_back(step);
    run.times.push_back(100.0 + static_cast<double>(step));
    run.series["train/reward"].push_back(step <= 10 ? 0 : reward);
  }
  run.settings = settings;
  return run;
}

}  // namespace

TEST_CASE("what runs came to, and the settings that differ, in 80 columns") {
  const std::string long_key = "policy.generation.vllm_cfg.max_model_len";
  RunRecord second =
      record("b", 1.0 / 3, {{"lr", "0.002"}, {"model", "\"/another/long/path\""}, {"same", "1"}, {long_key, "3"}});
  second.series["validation/accuracy"] = {0.25, 0.5};
  const std::string text =
      comparison({record("a", 0.5, {{"lr", "0.001"}, {"model", "null"}, {"same", "1"}, {"only", "2"}}), second});
  CHECK(text ==
        "[1] a\n"
        "[2] b\n"
        "\n"
        "last 10 steps, mean                         [1]        [2]\n"
        "steps                                        20         20\n"
        "seconds                                      19         19\n"
        "train/reward                                0.5     0.3333\n"
        "validation/accuracy                           -        0.5\n"
        "\n"
        "settings that differ                        [1]        [2]\n"
        "lr                                        0.001      0.002\n"
        "model\n"
        "  [1] null\n"
        "  [2] \"/another/long/path\"\n"
        "only                                          2          -\n"
        "policy.generation.vllm_cfg.max_model_len\n"
        "                                              -          3\n");
}

TEST_CASE("losses of training and validation; of validation the last, under either prefix") {
  const auto supervised = [](const std::string& name, const std::vector<std::string>& validations) {
    RunRecord run = record(name, 0, {});
    run.series = {{"train/loss", std::vector<double>(20, 0.5)}, {"timing/train/total_step_time", {}}};
    run.series["timing/train/total_step_time"].assign(20, 2);
    for (const std::string& key : validations) {
      run.series[key].assign(20, std::numeric_limits<double>::quiet_NaN());
      run.series[key][9] = 0.75;
      run.series[key][14] = 0.25;
    }
    return run;
  };
  CHECK(comparison({supervised("sft", {"validation/val_loss"}),
                    supervised("dpo", {"validation-default/loss", "validation-default/accuracy"})}) ==
        "[1] sft\n"
        "[2] dpo\n"
        "\n"
        "last 10 steps, mean                         [1]        [2]\n"
        "steps                                        20         20\n"
        "seconds                                      21         21\n"  // 19 between the lines, 2 before the first
        "train/loss                                  0.5        0.5\n"
        "validation/val_loss                        0.25          -\n"
        "validation-default/loss                       -       0.25\n"
        "validation-default/accuracy                   -       0.25\n"
        "timing/train/total_step_time                  2          2\n"
        "\n"
        "The settings are the same.\n");
}

TEST_CASE("many runs and long values stay within 80 columns") {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 11; ++i)
    runs.push_back(record("run", i, {{std::string(90, 'k'), std::string(200, static_cast<char>('a' + i))}}));
  const std::string text = comparison(runs);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(hexad::text::text_width(line) <= 80);
  CHECK(contains(text, "[11]"));
  CHECK(contains(text, "\n  [11] kkkk"));
}

TEST_CASE("of one run there are no settings to compare; what a resumption changed is said") {
  RunRecord run = record("logs/exp_002", 1, {{"lr", "2"}, {"seed", "1"}});
  CHECK_FALSE(contains(comparison({run}), "settings"));
  CHECK(resumptions(run).empty());
  run.folders = {{"logs/exp_001", 0, {{"lr", "1"}}},
                 {"logs/exp_002", 10, run.settings},
                 {"logs/exp_003", 15, {{"lr", "1"}, {"seed", "1"}}},
                 {"logs/exp_004", 17, {{"lr", "1"}, {"seed", "1"}}}};
  CHECK(resumptions(run) ==
        std::vector<std::string>{
            "logs/exp_002 goes on from exp_001: one run. 2 settings differ: hexad report logs/exp_001 logs/exp_002",
            "logs/exp_003 goes on from exp_002: one run. 1 setting differs: hexad report logs/exp_002 logs/exp_003",
            "logs/exp_004 goes on from exp_003: one run"});
}

TEST_CASE("runs of the same settings") {
  CHECK(contains(comparison({record("a", 1, {{"x", "1"}}), record("b", 1, {{"x", "1"}})}),
                 "\nThe settings are the same.\n"));
}
