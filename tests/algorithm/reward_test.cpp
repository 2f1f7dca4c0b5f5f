#include "core/algorithm/reward/reward.hpp"

#include <doctest/doctest.h>

#include "core/algorithm/reward/dynamic_sampling.hpp"
#include "lib/base/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::algorithm;
using golden::Json;
using Floats = std::vector<float>;
using Rows = std::vector<int64_t>;

namespace {

Floats floats(const Json& tensor) {
  const golden::Tensor parsed = golden::tensor(tensor);
  return {parsed.data.begin(), parsed.data.end()};
}

void check_tensor(const Floats& got, const Json& want) {
  golden::check_close({got.begin(), got.end()}, golden::tensor(want).data, 1e-5, 1e-6);
}

template <typename T>
std::optional<T> optional(const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

// Tokens of each sample's first assistant message.
Rows response_lengths(const Json& inputs) {
  if (inputs.contains("response_token_lengths")) return inputs.at("response_token_lengths").get<Rows>();
  Rows lengths;
  for (const Json& log : inputs.at("message_lengths_by_role")) {
    for (const Json& message : log) {
      if (message.at(0) != "assistant") continue;
      lengths.push_back(message.at(1));
      break;
    }
  }
  return lengths;
}

void check_shaping(const Json& test_case) {
  const Json& config = test_case.at("config").at("reward_shaping");
  const Json& inputs = test_case.at("inputs");
  Floats rewards = floats(inputs.at("total_reward"));
  if (config.at("enabled")) {
    const RewardShaping shaping{
        optional<int64_t>(config, "overlong_buffer_length"), optional<double>(config, "overlong_buffer_penalty"),
        optional<int64_t>(config, "max_response_length"), optional<double>(config, "stop_properly_penalty_coef")};
    std::vector<uint8_t> truncated(rewards.size(), 0);
    if (inputs.contains("truncated")) {
      for (size_t i = 0; i < truncated.size(); ++i) truncated[i] = floats(inputs.at("truncated"))[i] != 0;
    }
    if (test_case.at("expected").contains("error")) {
      CHECK_THROWS_AS(shape_rewards(rewards, response_lengths(inputs), truncated, shaping), Error);
      return;
    }
    shape_rewards(rewards, response_lengths(inputs), truncated, shaping);
  }
  check_tensor(rewards, test_case.at("expected").at("total_reward"));
}

void check_scaling(const Json& test_case) {
  const Json& config = test_case.at("config").at("reward_scaling");
  const RewardScaling scaling{config.value("source_min", 0.0), config.value("source_max", 1.0),
                              config.value("target_min", 0.0), config.value("target_max", 1.0)};
  for (const auto& [name, tensor] : test_case.at("inputs").items()) {
    Floats rewards = floats(tensor);
    if (config.value("enabled", false)) scale_rewards(rewards, scaling);
    check_tensor(rewards, test_case.at("expected").at(name));
  }
}

void check_logprob_error(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const auto shape = inputs.at("token_mask").at("shape").get<Rows>();
  Rows cu_seqlens;
  for (int64_t row = 0; row <= shape[0]; ++row) cu_seqlens.push_back(row * shape[1]);
  const Floats mask = floats(inputs.at("token_mask")), generation = floats(inputs.at("generation_logprobs"));
  const Floats training = floats(inputs.at("prev_logprobs")), rewards = floats(inputs.at("rewards"));
  Floats sample_mask = floats(inputs.at("sample_mask"));
  const auto metrics = mask_logprob_errors(
      {cu_seqlens, mask, generation, training}, rewards,
      optional<double>(test_case.at("config").at("grpo"), "seq_logprob_error_threshold"), sample_mask);
  check_tensor(sample_mask, test_case.at("expected").at("sample_mask"));
  for (const auto& [name, value] : test_case.at("expected").at("metrics").items()) {
    const std::string ours = name == "num_masked_seqs" ? "num_masked_seqs_by_logprob_error" : name;
    REQUIRE(metrics.contains(ours));
    golden::check_close({metrics.at(ours)}, {golden::number(value)}, 1e-5, 1e-6);
  }
}

rollout::Rollout rollout_of(const Json& round) {
  const auto ids = round.at("id").at("data").get<Rows>();
  data::Batch batch = data::Batch::of_lengths(Rows(ids.size(), 0));
  batch.set("id", data::Tensor::of(ids), data::Axis::sample);
  for (const char* name : {"total_reward", "baseline", "std"}) {
    batch.set(name, data::Tensor::of(floats(round.at(name))), data::Axis::sample);
  }
  rollout::Rollout rollout;
  rollout.batch = batch;
  for (const int64_t id : ids) rollout.responses.push_back(std::to_string(id));
  rollout.prompts.resize(ids.size());
  rollout.answers.resize(ids.size()), rollout.why_invalid.resize(ids.size());
  return rollout;
}

void check_dynamic_sampling(const Json& test_case) {
  const Json& grpo = test_case.at("config").at("grpo");
  if (!grpo.at("use_dynamic_sampling")) throw golden::Skip{"dynamic sampling is off, and nothing is filtered"};
  DynamicSampling sampling(
      grpo.at("num_prompts_per_step").get<int64_t>() * grpo.at("num_generations_per_prompt").get<int64_t>(),
      grpo.at("dynamic_sampling_max_gen_batches"));
  const Json& rounds = test_case.at("inputs").at("rounds");
  const Json& expected = test_case.at("expected").at("rounds");
  for (size_t i = 0; i < rounds.size(); ++i) {
    const rollout::Rollout generation = rollout_of(rounds[i]);
    // Deviations as NeMo-RL has them, of a sample's siblings: those of compat.dynamic_sampling_by_sample.
    const auto std = generation.batch.at("std").span<float>();
    if (i >= expected.size() || expected[i].contains("error")) {
      CHECK_THROWS_AS(sampling.add(generation, std), Error);
      return;
    }
    const std::optional<rollout::Rollout> done = sampling.add(generation, std);
    CHECK(done.has_value() == expected[i].at("is_batch_complete").get<bool>());
    CHECK(sampling.kept() == static_cast<int64_t>(expected[i].at("batch").at("id").at("data").size()));
    if (!done) continue;
    const auto ids = expected[i].at("batch").at("id").at("data").get<Rows>();
    CHECK(done->batch.at("id") == data::Tensor::of(ids));
    for (size_t row = 0; row < ids.size(); ++row) CHECK(done->responses[row] == std::to_string(ids[row]));
    // Upstream's total_reward holds rows that were filtered out; ours are the rewards of the rows kept.
    for (const auto& [ours, theirs] :
         {std::pair{"total_reward", "filtered_reward"}, {"std", "std"}, {"baseline", "baseline"}}) {
      const auto values = done->batch.at(ours).span<float>();
      check_tensor({values.begin(), values.end()}, expected[i].at("batch").at(theirs));
    }
    CHECK(sampling.discarded_valid_samples() ==
          expected[i].at("metrics").at("dynamic_sampling_num_discarded_valid_samples"));
  }
}

void check_mask_sample(const Json& test_case) {
  Floats mask = floats(test_case.at("inputs").at("loss_multiplier"));
  std::vector<uint8_t> flagged;
  for (const Json& flag : test_case.at("inputs").at("mask_sample")) flagged.push_back(flag.get<bool>());
  filter_overlong(mask, flagged);
  check_tensor(mask, test_case.at("expected").at("loss_multiplier"));
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("rewards") {
    const std::map<std::string, std::function<void(const Json&)>> checks = {
        {"reward_shaping", check_shaping},          {"reward_scaling", check_scaling},
        {"seq_logprob_error", check_logprob_error}, {"dynamic_sampling", check_dynamic_sampling},
        {"mask_sample", check_mask_sample},
    };
    golden::for_each_case(
        "rewards", [&](const Json& test_case) { checks.at(golden::prefix(test_case))(test_case); },
        [&](const Json& test_case) { return checks.contains(golden::prefix(test_case)); });
  }
}

TEST_CASE("scaling reports what it clipped") {
  Floats rewards = {-1, 0.25, 3};
  CHECK(scale_rewards(rewards, {0, 1, -1, 1}) == 2);
  CHECK(rewards == Floats{-1, -0.5, 1});
  CHECK_THROWS_WITH_AS(scale_rewards(rewards, {1, 1, 0, 1}),
                       doctest::Contains("source_max (1) must exceed source_min (1)"), Error);
}

TEST_CASE("dynamic sampling that never fills says how far it came") {
  DynamicSampling sampling(4, 1);
  rollout::Rollout two;
  two.batch = data::Batch::of_lengths(Rows{0, 0});
  two.responses.resize(2), two.prompts.resize(2), two.answers.resize(2), two.why_invalid.resize(2);
  CHECK_FALSE(sampling.add(two, Floats{0, 1}));
  CHECK_THROWS_WITH_AS(sampling.add(two, Floats{0, 0}), doctest::Contains("after 2 generations only 1 of 4 samples"),
                       Error);
}
