// What can be done with a run's result.
#include "app/console/result.hpp"

#include "lib/base/error.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad::console;
using toy::TempDir;
using Lines = std::vector<std::string>;

namespace {

Lines commands(const std::filesystem::path& file, const std::string& algorithm, const std::string& model) {
  Lines found;
  for (const NextStep& step : next_steps(file, algorithm, model, "logs/exp_001")) found.push_back(step.command);
  return found;
}

}  // namespace

TEST_CASE("the file that comes with the program has commands for each algorithm, with the checkpoint's path") {
  const auto file = toy::source_dir() / "app/console/result.txt";
  CHECK(commands(file, "grpo", "results/step_80/policy/weights") ==
        Lines{"hexad chat results/step_80/policy/weights", "vllm serve results/step_80/policy/weights",
              "hf upload USER/NAME results/step_80/policy/weights", "hexad help metrics"});
  CHECK(commands(file, "rm", "m") == Lines{"hf upload USER/NAME m", "hexad help metrics"});  // it says nothing
}

TEST_CASE("lines of a file of one's own, for a shell") {
  const TempDir dir;
  const auto file = dir.write("result.txt", "# mine\n\ngrpo sft | look | ls {model} {run}\n  dpo|x|y | z\n");
  CHECK(commands(file, "sft", "a/it's here") == Lines{"ls 'a/it'\\''s here' logs/exp_001"});
  CHECK(commands(file, "dpo", "m") == Lines{"y | z"});
  CHECK(commands(file, "rm", "m").empty());
  CHECK(commands(dir / "none.txt", "sft", "m").empty());
}

TEST_CASE("a line of another form is named") {
  const TempDir dir;
  const auto file = dir.write("result.txt", "grpo | look | ls\ngrpo ls\n");
  std::string what;
  try {
    next_steps(file, "grpo", "m", "r");
  } catch (const hexad::Error& error) {
    what = error.what();
  }
  CHECK(what == file.string() + ":2: wanted `ALGORITHMS | WHAT | COMMAND`, got 'grpo ls'");
}

TEST_CASE("commands stand below each other, and one that is too wide goes on behind a backslash") {
  const std::vector<NextStep> steps = {{"talk to it", "hexad chat results/m"},
                                       {"share it", "hf upload USER/NAME results/m"}};
  CHECK(lines_of(steps, 0) ==
        Lines{"  talk to it  hexad chat results/m", "  share it    hf upload USER/NAME results/m"});
  CHECK(lines_of(steps, 36) ==
        Lines{"  talk to it  hexad chat results/m", "  share it    hf upload USER/NAME \\", "      results/m"});
  CHECK(lines_of({{"a", "x 'b c d e f g h'"}}, 12) == Lines{"  a  x 'b c d e f g h'"});  // no word is broken
}
