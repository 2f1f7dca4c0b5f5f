// What is said of steps that teach nothing.
#include "core/algorithm/grpo/flat_rewards.hpp"

#include <doctest/doctest.h>

#include "tests/support/borrowed.hpp"

using namespace hexad;
using algorithm::FlatRewards;

namespace {

constexpr bool kFlat = true, kVaried = false;

// One prompt, answered three times.
struct Judged {
  explicit Judged(const std::vector<float>& sample_mask = {0, 1, 1}) {
    prompt.text = "What is\n2 + 2?", prompt.answer = "4", prompt.env_name = "math";
    rollout.batch = data::Batch::of_lengths(std::vector<int64_t>{2, 2, 2});
    rollout.batch.set("rewards", data::Tensor::of<float>({1, 0.5f, 0.5f}), data::Axis::sample);
    rollout.batch.set("sample_mask", data::Tensor::of(sample_mask), data::Axis::sample);
    rollout.batch.set("truncated", data::Tensor::of<uint8_t>({1, 0, 0}), data::Axis::sample);
    rollout.batch.set("invalid", data::Tensor::of<uint8_t>({0, 0, 0}), data::Axis::sample);
    rollout.responses = {"It is 4", "It is five", "6"};
    rollout.answers = {std::nullopt, "5", "6"};
    rollout.prompts.assign(3, test_support::borrowed(prompt));
  }
  // A sample that is filtered has one all the same.
  void give_advantages(float second, float third) {
    rollout.batch.set("advantages", data::Tensor::of<float>({7, 7, second, second, third, third}), data::Axis::token);
  }
  data::Datum prompt;
  rollout::Rollout rollout;
};

// What is said after each of these steps; "" is nothing.
std::vector<std::string> said_of(Judged judged, const std::vector<bool>& steps) {
  judged.rollout.prompts.assign(3, test_support::borrowed(judged.prompt));
  FlatRewards flat;
  std::vector<std::string> said;
  for (size_t i = 0; i < steps.size(); ++i) {
    judged.give_advantages(0, steps[i] == kFlat ? 0 : 0.5f);
    const std::vector<std::string> lines = flat.look(judged.rollout, 11 + static_cast<int64_t>(i));
    CHECK(lines.size() <= 1);
    said.push_back(lines.empty() ? "" : lines[0]);
  }
  return said;
}

}  // namespace

TEST_CASE("groups of equal rewards are told of after three steps in a row, with a sample and its verdict") {
  const auto said = said_of(Judged(), {kFlat, kFlat, kVaried, kFlat, kFlat, kFlat, kFlat});
  for (const size_t quiet : {0, 1, 2, 3, 4, 6}) CHECK(said[quiet] == "");
  CHECK(
      said[5] ==
      "steps 14 to 16: the rewards of each prompt's samples are all equal, so that no sample has an advantage and "
      "rewards teach nothing. For example: prompt \"What is\\n2 + 2?\", response \"It is five\", expected answer "
      "\"4\", read as \"5\", reward 0.5. If that verdict is wrong, look at env.math and at the column of answers "
      "(output_key of the dataset); if it is right, the task is too hard or too easy: take other prompts, more samples "
      "of each (grpo.num_generations_per_prompt), or a reward that tells better answers from worse ones "
      "(docs/metrics.md)");
}

TEST_CASE("steps without a sample in the loss are told of as such") {
  const auto said = said_of(Judged({0, 0, 0}), {kFlat, kFlat, kFlat});
  CHECK(said[2].starts_with(
      "steps 11 to 13: no sample is in the loss (1 of 3 were cut off at policy.generation.max_new_tokens), so that "
      "nothing is learnt. For example: prompt \"What is\\n2 + 2?\", response \"It is 4\", expected answer \"4\", "
      "reward 1. If answers need more room, raise policy.generation.max_new_tokens"));
}

TEST_CASE("long texts are cut between characters, and what is missing is said") {
  Judged judged;
  judged.prompt.answer.clear();
  judged.rollout.responses[1] = "a";
  for (int i = 0; i < 300; ++i) judged.rollout.responses[1] += "\u00e9";  // two bytes each
  const std::string text = algorithm::judged_sample(judged.rollout, 1);
  CHECK(text.find("expected answer none, read as \"5\"") != std::string::npos);
  CHECK(text.find(" ... ") != std::string::npos);
  CHECK(text.find("\ufffd") == std::string::npos);
  CHECK(text.size() < 400);
}

TEST_CASE("one environment of several whose rewards are flat is told of once it had three batches of samples") {
  Judged judged({1, 1, 1});
  data::Datum other = judged.prompt;
  other.env_name = "code", other.text = "Sort.";
  judged.rollout.prompts[2] = test_support::borrowed(other);
  FlatRewards flat;
  std::vector<std::string> said;
  for (int64_t step = 1; step <= 12; ++step) {  // math varies, a third of each batch is code
    judged.give_advantages(0.5f, 0);
    for (const std::string& line : flat.look(judged.rollout, step)) said.push_back(line);
    CHECK(said.size() == (step < 9 ? 0u : 1u));
  }
  CHECK(
      said.at(0).starts_with("steps 1 to 9, samples of env.code: the rewards of each prompt's samples are all equal, "
                             "so that no sample has an advantage and rewards teach nothing. For example: prompt "
                             "\"Sort.\", response \"6\""));
  CHECK(said[0].find("look at env.code and") != std::string::npos);
  judged.give_advantages(0.5f, -0.5f);
  CHECK(flat.look(judged.rollout, 13).empty());
  for (int64_t step = 14; step <= 22; ++step) {
    judged.give_advantages(0.5f, 0);
    CHECK(flat.look(judged.rollout, step).size() == (step == 22 ? 1u : 0u));
  }
}
