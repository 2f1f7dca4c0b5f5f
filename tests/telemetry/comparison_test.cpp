// hexad report --compare on a terminal.
#include "core/telemetry/comparison.hpp"

#include <sstream>

#include "core/telemetry/text_width.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad::telemetry;
using plugin_test::contains;

namespace {

RunRecord record(const std::string& name, double reward, const std::map<std::string, std::string>& settings) {
  RunRecord run;
  run.directory = name;
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

TEST_CASE("many runs and long values stay within 80 columns") {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 11; ++i)
    runs.push_back(record("run", i, {{std::string(90, 'k'), std::string(200, static_cast<char>('a' + i))}}));
  const std::string text = comparison(runs);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= 80);
  CHECK(contains(text, "[11]"));
  CHECK(contains(text, "\n  [11] kkkk"));
}

TEST_CASE("runs of the same settings") {
  CHECK(contains(comparison({record("a", 1, {{"x", "1"}}), record("b", 1, {{"x", "1"}})}),
                 "\nThe settings are the same.\n"));
}
