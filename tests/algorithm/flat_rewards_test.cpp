// What is said of steps that teach nothing.
#include "core/algorithm/grpo/flat_rewards.hpp"

#include <doctest/doctest.h>

using namespace hexad;
using algorithm::FlatRewards;

namespace {

const telemetry::Metrics kFlat = {{"advantages/max", 0}, {"advantages/min", 0}},
                         kVaried = {{"advantages/max", 0.5}, {"advantages/min", -0.5}};

// One prompt, answered three times.
struct Judged {
  explicit Judged(const std::vector<float>& sample_mask = {0, 1, 1}) {
    prompt.text = "What is\n2 + 2?", prompt.answer = "4", prompt.env_name = "math";
    rollout.batch = data::Batch::of_lengths(std::vector<int64_t>{0, 0, 0});
    rollout.batch.set("rewards", data::Tensor::of<float>({1, 0.5f, 0.5f}), data::Axis::sample);
    rollout.batch.set("sample_mask", data::Tensor::of(sample_mask), data::Axis::sample);
    rollout.batch.set("truncated", data::Tensor::of<uint8_t>({1, 0, 0}), data::Axis::sample);
    rollout.batch.set("invalid", data::Tensor::of<uint8_t>({0, 0, 0}), data::Axis::sample);
    rollout.responses = {"It is 4", "It is five", "6"};
    rollout.answers = {std::nullopt, "5", "6"};
    rollout.prompts.assign(3, &prompt);
  }
  data::Datum prompt;
  rollout::Rollout rollout;
};

// What is said after each of these steps; "" is nothing.
std::vector<std::string> said_of(const Judged& judged, const std::vector<telemetry::Metrics>& steps) {
  FlatRewards flat;
  std::vector<std::string> said;
  for (size_t i = 0; i < steps.size(); ++i)
    said.push_back(flat.look(judged.rollout, steps[i], 11 + static_cast<int64_t>(i)).value_or(""));
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
      "of each (grpo.num_generations_per_prompt), or a reward that tells better answers from worse ones");
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
