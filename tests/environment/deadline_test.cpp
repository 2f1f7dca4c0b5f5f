// One deadline for all that a step asks of a program: what has a reward by then keeps it, the rest is invalid.
#include <algorithm>
#include <chrono>
#include <thread>

#include "core/environment/program/environment.hpp"
#include "tests/environment/scripted_program.hpp"

using namespace scripted;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

using Floats = std::vector<float>;
using Flags = std::vector<uint8_t>;

constexpr double kEnding_s = 4;  // that the end of a copy and a busy machine may take on top

struct Timed {
  Scores scores;
  double seconds = 0;
};

Timed timed(const Environment& environment, const std::vector<std::string>& texts) {
  const auto began = std::chrono::steady_clock::now();
  Scores scores = score(environment, texts);
  return {std::move(scores), std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
}

// With copies that have answered, so that no start is waited for.
std::unique_ptr<Environment> warm(Script& script, const Json& section) {
  auto environment = script.make(section);
  CHECK(score(*environment, {"good", "good", "good", "good"}).invalid == Flags(4, 0));
  return environment;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("one of eight that hangs at each attempt costs no other sample, and the step no more than the deadline") {
  Script script;
  const Log log;
  const auto environment = warm(script, {{"retries", 1000}, {"timeout_s", 1}, {"deadline_s", 8}});
  const Timed step = timed(*environment, {"half", "good", "hang", "good", "good", "half", "good", "bad"});
  CHECK(step.scores.rewards == Floats{0.5f, 1, 0, 1, 1, 0.5f, 1, 0});
  CHECK(step.scores.invalid == Flags{0, 0, 1, 0, 0, 0, 0, 0});
  SAYS(step.scores.why_invalid, "did not answer within ");
  CHECK(step.seconds > 7.9);
  CHECK(step.seconds < 8 + kEnding_s);
  SAYS(log.text(),
       "env.mine: 1 of 8 rewards of step 3 had not come after 8 s, and these samples are invalid. Where "
       "they only take long, raise env.mine.deadline_s, or num_workers");
  CHECK(score(*environment, {"good", "good"}).rewards == Floats{1, 1});  // it is started again
}

TEST_CASE("where all eight hang none is 0, and the step ends at the deadline") {
  Script script;
  for (const int batch_size : {1, 8}) {
    CAPTURE(batch_size);
    const auto environment = warm(
        script,
        {{"retries", 1000}, {"timeout_s", 0.5}, {"deadline_s", 5}, {"num_workers", 1}, {"batch_size", batch_size}});
    const Timed step = timed(*environment, std::vector<std::string>(8, "hang"));
    CHECK(step.scores.invalid == Flags(8, 1));
    CHECK(step.seconds < 5 + kEnding_s);
    CHECK(timed(*environment, {"good", "half"}).scores.rewards == Floats{1, 0.5f});
  }
}

TEST_CASE("where the second list alone hangs the first one's rewards stay, and the step after is as good as ever") {
  Script script;
  const Log log;
  const auto environment = warm(script, {{"num_workers", 1}, {"batch_size", 4}, {"timeout_s", 60}, {"deadline_s", 5}});
  const Timed step = timed(*environment, {"good", "half", "bad", "good", "good", "hang", "good", "good"});
  CHECK(step.scores.rewards == Floats{1, 0.5f, 0, 1, 0, 0, 0, 0});
  CHECK(step.scores.invalid == Flags{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(step.scores.metrics.at("num_reward_failures") == 1);
  CHECK(step.seconds < 5 + kEnding_s);
  SAYS(log.text(), "env.mine: 4 of 8 rewards of step 3 had not come after 5 s");
  CHECK(score(*environment, std::vector<std::string>(8, "good")).invalid == Flags(8, 0));
}

TEST_CASE("a list has timeout_s for each sample, and half of the deadline at most") {
  Script script;
  const auto environment =
      warm(script, {{"num_workers", 1}, {"batch_size", 8}, {"timeout_s", 2}, {"deadline_s", 8}, {"retries", 0}});
  std::vector<std::string> texts(8, "good");
  texts[5] = "slow:3";  // longer than one sample may take
  CHECK(score(*environment, texts).invalid == Flags(8, 0));
  texts[5] = "hang";
  const Timed step = timed(*environment, texts);
  CHECK(step.scores.invalid == Flags(8, 1));
  CHECK(step.seconds < 4 + kEnding_s);
}

TEST_CASE("samples that no copy was free for are invalid, and cost the program no failure") {
  Script script;
  const auto environment = warm(script, {{"num_workers", 1}, {"timeout_s", 60}, {"deadline_s", 3}, {"retries", 0}});
  const Timed step = timed(*environment, {"good", "slow:60", "good", "good"});
  CHECK(step.scores.invalid == Flags{0, 1, 1, 1});
  CHECK(step.scores.metrics.at("num_reward_failures") == 1);
  CHECK(step.seconds < 3 + kEnding_s);
  SAYS(error_of([&] {
         score(*script.make({{"deadline_s", 1e-9}}), {"good", "good"});
       }),
       "has never answered: no copy of the program was free before deadline_s had passed");
  // Two steps at a time, as asynchronous runs have them: the second waits for the one copy no longer than its deadline.
  Timed both[2];
  {
    const std::jthread first([&] { both[0] = timed(*environment, {"slow:60"}); });
    const std::jthread second([&] { both[1] = timed(*environment, {"slow:60"}); });
  }
  for (const Timed& each : both) {
    CHECK(each.scores.invalid == Flags{1});
    CHECK(each.seconds < 3 + kEnding_s);
  }
}

TEST_CASE("deadline_s is ten times timeout_s and startup_timeout_s where it is not set, and seconds above 0") {
  const auto settings = [](Json section) {
    section["command"] = {"python3"};
    return program_settings("mine", section);
  };
  CHECK(settings(Json::object()).deadline_s == 660);
  CHECK(settings({{"timeout_s", 2}, {"startup_timeout_s", 5}}).deadline_s == 25);
  CHECK(settings({{"deadline_s", 7}}).deadline_s == 7);
  SAYS(error_of([&] { settings({{"deadline_s", 0}}); }), "env.mine.deadline_s: want seconds, more than 0, got 0");
}

TEST_SUITE_END();
