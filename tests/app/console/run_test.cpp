// What `hexad train` shows on a real terminal, narrow and wide, and in a pipe.
#include <doctest/doctest.h>

#include <regex>

#include "lib/text/text_width.hpp"
#include "tests/support/terminal.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

// One response every 20 ms: a step takes longer than ranks wait before they tell how far they are.
const char* const kSlow = "+policy.generation.plugin_config.poll_ms=20";

std::string command_of(const Arguments& arguments) {
  std::string text = toy::hexad().string();
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return text;
}

size_t matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern, std::regex::multiline);
  return static_cast<size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), regex), {}));
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("on a terminal a run shows what it works on, a bar, an estimate, and no line wider than that") {
  for (const int columns : {80, 200}) {
    CAPTURE(columns);
    const TempDir dir;
    const toy::Terminal terminal(
        columns,
        command_of(train(dir, {kSlow, "grpo.max_num_steps=4", "grpo.val_period=2", "grpo.val_at_start=true"})));
    REQUIRE(toy::eventually([&] { return terminal.has_ended(); }));
    const std::string text = terminal.text(), bytes = terminal.bytes();
    INFO(text);
    CHECK(terminal.code() == 0);
    for (const std::string& line : terminal.lines())
      CHECK_MESSAGE(hexad::text::text_width(line) <= static_cast<size_t>(columns), line);
    CHECK(text.starts_with("device    cpu (1 rank)\nmodel     "));
    CHECK(contains(text, "\ndata      puzzle: 64 prompts, 16 to validate on\n"));
    CHECK(contains(text, fmt::format("\nlog       {}/logs/exp_001\n", dir.path().string())));
    CHECK(matches(text, "^validation before step 1, the model as it was:  accuracy 0\\.[0-9]+") == 1);
    CHECK(matches(text, "^validation after step [24]:  accuracy [.0-9]+ \\([-+][.0-9]+\\)$") == 2);
    CHECK(matches(text, "^step [1-4]/4  reward ") == 4);
    CHECK(matches(text, "^(step|  time).* tok/s(  [0-9]+ s left)?  \\(generation [0-9]+%") == 4);
    CHECK(contains(text, fmt::format("\ndone after step 4: {}/logs/exp_001/report.html\n", dir.path().string())));
    CHECK(matches(text, "^accuracy [.0-9]+ before, [.0-9]+ after  reward [.0-9]+ to [.0-9]+  4 steps in [0-9]+ s$") ==
          1);
    // What stood on the last line meanwhile.
    CHECK(matches(bytes, "step 2/4  generation\033\\[0m \\[#+\\.+\\] [0-9]+/64  [0-9,]+ tok/s  [0-9]+ s left") > 0);
    CHECK(matches(bytes, "validation\033\\[0m \\[#*\\.+\\] [0-9]+/16") > 0);
    CHECK(matches(text, "\\[[#.]+\\]") == 0);  // none stays
  }
}

TEST_CASE("training has a bar too, of its micro-batches") {
  const TempDir dir;
  const toy::Terminal terminal(
      100, command_of(train(dir, {"+policy.plugin_config.fault=train@0:slow", "grpo.max_num_steps=4"})), "NO_COLOR=1");
  REQUIRE(toy::eventually([&] { return terminal.has_ended(); }));
  CHECK_MESSAGE(matches(terminal.bytes(), "step [1-4]/4  training \\[#+\\.+\\] [1-4]/4  [0-9,]+ tok/s") > 0,
                terminal.bytes());
}

TEST_CASE("a bar is drawn to the width that the terminal has got meanwhile, and the old one goes") {
  const TempDir dir;
  toy::Terminal terminal(120, command_of(train(dir, {kSlow, "grpo.max_num_steps=4"})));
  REQUIRE(toy::eventually([&] { return contains(terminal.bytes(), "step 2/4  generation"); }));
  terminal.resize(60);
  REQUIRE(toy::eventually([&] { return terminal.has_ended(); }));
  INFO(terminal.text());
  CHECK(terminal.code() == 0);
  CHECK(matches(terminal.text(), "\\[[#.]+\\]") == 0);
  CHECK(matches(terminal.text(), "^step 4/4  reward ") == 1);
}

TEST_CASE("NO_COLOR leaves colours out, and the bar stays") {
  const TempDir dir;
  const toy::Terminal terminal(80, command_of(train(dir, {kSlow, "grpo.max_num_steps=2"})), "NO_COLOR=1");
  REQUIRE(toy::eventually([&] { return terminal.has_ended(); }));
  CHECK(matches(terminal.bytes(), "step 1/2  generation \\[#+\\.+\\] [0-9]+/64") > 0);
  CHECK(matches(terminal.bytes(), "\033\\[[0-9]+m") == 0);
}

TEST_CASE("in a pipe a run has one line a step, and nothing that a terminal obeys") {
  const TempDir dir;
  const Ended run = toy::run(train(dir, {kSlow, "grpo.max_num_steps=3", "grpo.val_period=3"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.err.find_first_of("\r\033") == std::string::npos);
  CHECK(matches(run.err,
                "^step [1-3]/3  reward .*  time .* s  [0-9,]+ tok/s(  [0-9]+ s left)?  \\(generation .*\\)$") == 3);
  CHECK(matches(run.err, "^validation after step 3:  accuracy [.0-9]+$") == 1);
  CHECK(matches(run.err, "^accuracy [.0-9]+ after step 3  reward [.0-9]+ to [.0-9]+  3 steps in [0-9]+ s$") == 1);
  CHECK(matches(run.err, "^.*step .*$") == 5);  // those of steps, and these two
  CHECK_FALSE(contains(run.err, "sha256"));
}

TEST_CASE("a run that goes on says after which steps it has measured, and nothing of the model as it was") {
  const TempDir dir;
  REQUIRE(toy::run(train(dir, {"grpo.max_num_steps=2", "grpo.val_at_start=true"})).code == 0);
  const Ended run = toy::run(train(dir, {"grpo.max_num_steps=4", "grpo.val_at_start=true", "grpo.val_period=1"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_FALSE(contains(run.err, "as it was"));
  CHECK(matches(run.err, "^accuracy [.0-9]+ after step 3, [.0-9]+ after step 4  ") == 1);
}

TEST_SUITE_END();
