// What a run through the first-party plugins shows on a terminal, to its last lines.
#include <doctest/doctest.h>

#include <regex>

#include "lib/text/text_width.hpp"
#include "tests/run/first_party.hpp"
#include "tests/support/terminal.hpp"

using plugin_test::contains;
using toy::TempDir;

namespace {

bool has(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern, std::regex::multiline));
}

std::string command_of(const std::vector<std::string>& arguments) {
  std::string text = toy::hexad().string();
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return fmt::format("cd {} && {}", first_party::source(), text);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("the last lines name the newest checkpoint, as a model that is there, and fit the terminal") {
  for (const int columns : {80, 200}) {
    CAPTURE(columns);
    const TempDir dir;
    const toy::Terminal terminal(
        columns, command_of(first_party::train("configs/quickstart.yaml", dir,
                                               {"grpo.max_num_steps=3", "grpo.val_period=2", "++cluster.device=cpu"})));
    REQUIRE(toy::eventually([&] { return terminal.has_ended(); }));
    // A command that is wider than the terminal goes on behind a backslash.
    const std::string text = std::regex_replace(terminal.text(), std::regex(R"( \\\n +)"), " ");
    INFO(text);
    CHECK(terminal.code() == 0);
    for (const std::string& line : terminal.lines())
      CHECK_MESSAGE(hexad::text::text_width(line) <= static_cast<size_t>(columns), line);
    CHECK(has(text, "^model     configs/quickstart_model \\([0-9.,]+( M)? parameters, float32\\)$"));
    CHECK(has(text, "^data      puzzle: [0-9,]+ prompts, [0-9,]+ to validate on$"));
    CHECK(has(text, "^backend   dtensor [0-9.]+$"));  // its own plugins need no files
    CHECK(has(text, "^generator native [0-9.]+$"));
    const std::string model = (dir / "checkpoints/step_3/policy/weights").string();
    CHECK(toy::fs::exists(model + "/config.json"));
    CHECK_MESSAGE(has(text, "^done after step 3: .*report.html\naccuracy [.0-9]+ before, [.0-9]+ after  "), text);
    CHECK(contains(text, "\n  talk to it       hexad chat " + model + "\n"));
    CHECK(contains(text, "\n  serve it         vllm serve " + model + "\n"));
    CHECK(contains(text, "\n  read the curves  hexad help metrics\n"));
  }
}

TEST_CASE("supervised runs have the same, and one without a checkpoint says nothing of a model") {
  const TempDir dir;
  const auto arguments =
      first_party::train("configs/sft_quickstart.yaml", dir, {"sft.max_num_steps=4", "++cluster.device=cpu"});
  const toy::Ended run =
      toy::Program({"env", "-C", first_party::source(), toy::hexad().string()}, arguments, "").wait();
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(has(run.err, "^data      .*: [0-9,]+ conversations, [0-9,]+ to validate on$"));
  CHECK(has(run.err, "^validation before step 1, the model as it was:  val_loss [.0-9]+$"));
  CHECK(has(run.err, "^validation after step 4:  val_loss [.0-9]+ \\(-[.0-9]+\\)$"));
  CHECK(has(run.err, "^step 4/4  loss [.0-9]+  grad .* tok/s  \\("));
  CHECK(has(run.err, "^validation loss [.0-9]+ before, [.0-9]+ after  4 steps in [0-9]+ s$"));
  CHECK(contains(run.err,
                 "\n  talk to it       hexad chat " + (dir / "checkpoints/step_4/policy/weights").string() + "\n"));

  const TempDir other;
  const toy::Ended unsaved =
      toy::Program({"env", "-C", first_party::source(), toy::hexad().string()},
                   first_party::train("configs/sft_quickstart.yaml", other,
                                      {"sft.max_num_steps=1", "++cluster.device=cpu", "checkpointing.enabled=false"}),
                   "")
          .wait();
  CHECK(unsaved.code == 0);
  CHECK_FALSE(contains(unsaved.err, "hexad chat"));
}

TEST_SUITE_END();
