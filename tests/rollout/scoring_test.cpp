// What environments report, of several at once, and what is told of right answers.
#include "core/rollout/scoring.hpp"

#include <doctest/doctest.h>

#include "tests/support/borrowed.hpp"

using namespace hexad;
using namespace hexad::rollout;

namespace {

// Each sample 2, its part `correctness` where there is one, and so many failures.
struct Failing : environment::Environment {
  Failing(double failures, std::optional<float> correctness) : failures(failures), correctness(correctness) {}
  environment::Scores score(std::span<const environment::Sample> samples, int64_t) const override {
    environment::Scores scores;
    scores.rewards.assign(samples.size(), 2);
    scores.invalid.assign(samples.size(), 0);
    if (correctness) scores.components["correctness"].assign(samples.size(), *correctness);
    scores.metrics = {{"num_reward_failures", failures}, {"code/num_reward_failures", 1}, {"speed", failures}};
    return scores;
  }
  double failures;
  std::optional<float> correctness;
};

struct Fixture {
  Fixture() {
    environments["a"] = std::make_unique<Failing>(3, 1.0f);
    environments["b"] = std::make_unique<Failing>(5, std::nullopt);
    for (const char* name : {"a", "b"}) {
      prompts.emplace_back();
      prompts.back().token_ids = {1, 2};
      prompts.back().env_name = name;
    }
    for (const data::Datum& prompt : prompts) conversations.emplace_back(test_support::borrowed(prompt), 0);
    for (Conversation& conversation : conversations) {
      conversation.tokens = {1, 2, 3};
      conversation.response_at = 2;
      all.push_back(&conversation);
    }
  }
  Environments environments;
  std::vector<data::Datum> prompts;
  std::vector<Conversation> conversations;
  std::vector<Conversation*> all;
};

}  // namespace

TEST_CASE("counts of several environments add up, and what else they report is a mean over samples") {
  Fixture fixture;
  const std::map<std::string, double> metrics = score(fixture.all, fixture.environments, 1).values();
  CHECK(metrics.at("num_reward_failures") == 8);
  CHECK(metrics.at("code/num_reward_failures") == 2);
  CHECK(metrics.at("speed") == 4);
}

TEST_CASE("over the generations of a step too; other metrics are the newest's, and the engine's are nobody else's") {
  Rollout all, more;
  for (Rollout* each : {&all, &more}) each->batch = data::Batch::of_lengths(std::vector<int64_t>{1});
  all.reported.add({{"num_reward_failures", 3}, {"speed", 6}, {"early", 9}}, 1);
  more.reported.add({{"num_reward_failures", 4}, {"speed", 2}}, 3);
  more.reported.add({{"accuracy", 777}}, 3);
  all.metrics = {{"accuracy", 0.5}};
  more.metrics = {{"accuracy", 0.25}};
  all.of_generators = {{"requests", 4}};
  more.of_generators = {{"requests", 5}};
  all.append(more);
  CHECK(all.metrics == std::map<std::string, double>{{"accuracy", 0.25}});
  CHECK(all.reported.values() ==
        std::map<std::string, double>{{"num_reward_failures", 7}, {"speed", 3}, {"early", 9}, {"accuracy", 777}});
  CHECK(all.of_generators == std::map<std::string, double>{{"requests", 5}});
}

TEST_CASE("accuracy goes by the part correctness where a reward has one, as NeMo-RL's does") {
  Fixture fixture;
  score(fixture.all, fixture.environments, 1);
  const auto metrics = metrics_of(fixture.conversations, 1);
  CHECK(metrics.at("accuracy") == 1.5);  // 1 of the first, 2 of the other
  fixture.conversations[0].components["correctness"] = 0;
  CHECK(metrics_of(fixture.conversations, 1).at("accuracy") == 1);
  CHECK(metrics_of(fixture.conversations, 1).at("pass@samples_per_prompt") == 0.5);
}
