// The parts of a GRPO step, on batches made by hand.
#include "core/algorithm/grpo/phases.hpp"
#include "core/algorithm/reward/reward.hpp"

#include <cmath>
#include <limits>

#include "tests/support/toy/workers.hpp"

using namespace hexad;
using namespace hexad::algorithm;

namespace {

// Two groups of two: prompts of two tokens; responses of 1, 3, 2 and 2 tokens. The prompts of rows 2 and 3 are equal
// to each other, those of rows 0 and 1 too.
rollout::Rollout four_samples(const std::vector<float>& rewards) {
  const std::vector<int64_t> lengths = {3, 5, 4, 4};
  rollout::Rollout rollout;
  rollout.batch = data::Batch::of_lengths(lengths);
  data::Batch& batch = rollout.batch;
  batch.set("input_ids", data::Tensor::of<int64_t>({1, 4, 7, 1, 4, 7, 7, 7, 1, 5, 7, 7, 1, 5, 7, 8}),
            data::Axis::token);
  batch.set("token_mask", data::Tensor::of<float>({0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}), data::Axis::token);
  batch.set("generation_logprobs", data::Tensor(data::DType::f32, {16}), data::Axis::token);
  batch.set("prev_logprobs", data::Tensor(data::DType::f32, {16}), data::Axis::token);
  batch.set("reference_policy_logprobs", data::Tensor(data::DType::f32, {16}), data::Axis::token);
  batch.set("prompt_length", data::Tensor::of<int64_t>({2, 2, 2, 2}), data::Axis::sample);
  batch.set("sample_mask", data::Tensor::of<float>({1, 1, 1, 1}), data::Axis::sample);
  batch.set("truncated", data::Tensor::of<uint8_t>({0, 1, 0, 0}), data::Axis::sample);
  batch.set("invalid", data::Tensor::of<uint8_t>({0, 0, 0, 0}), data::Axis::sample);
  batch.set("rewards", data::Tensor::of(rewards), data::Axis::sample);
  return rollout;
}

// The same, with equal prompts.
rollout::Rollout one_group(const std::vector<float>& rewards) {
  rollout::Rollout rollout = four_samples(rewards);
  const auto ids = rollout.batch.at("input_ids").span<int64_t>();
  ids[9] = ids[13] = 4;
  return rollout;
}

std::vector<float> column(const rollout::Rollout& rollout, const char* name) {
  const auto values = rollout.batch.at(name).span<float>();
  return {values.begin(), values.end()};
}

config::RunConfig plain() {
  config::RunConfig config;
  config.grpo.adv_estimator.normalize_rewards = false;
  config.grpo.adv_estimator.use_leave_one_out_baseline = false;
  config.grpo.use_leave_one_out_baseline = false;
  return config;
}

}  // namespace

TEST_CASE("rewards are scaled, then shaped by the response's length; overlong samples leave the loss") {
  config::GrpoConfig config;
  rollout::Rollout rollout = four_samples({1, 1, 0, 2});
  shape(config, rollout);
  CHECK(column(rollout, "rewards") == std::vector<float>{1, 1, 0, 2});
  CHECK(column(rollout, "sample_mask") == std::vector<float>{1, 1, 1, 1});

  config.reward_scaling = {true, 0, 1, -1, 1};
  config.reward_shaping.enabled = true;
  config.reward_shaping.overlong_buffer_length = 2;
  config.reward_shaping.overlong_buffer_penalty = 1;
  config.reward_shaping.max_response_length = 3;
  config.overlong_filtering = true;
  shape(config, rollout);
  // Scaled: 1, 1, -1, 1 (2 is clamped). Responses of 1, 3, 2, 2 tokens enter the buffer of 1 .. 3 by 0, 2, 1, 1.
  CHECK(column(rollout, "rewards") == std::vector<float>{1, 0, -1.5f, 0.5f});
  CHECK(column(rollout, "sample_mask") == std::vector<float>{1, 0, 1, 1});
}

TEST_CASE("a truncated sample's reward is multiplied when stop_properly_penalty_coef is set") {
  config::GrpoConfig config;
  config.reward_shaping.enabled = true;
  config.reward_shaping.stop_properly_penalty_coef = 0.25;
  rollout::Rollout rollout = four_samples({1, 1, 0, 2});
  shape(config, rollout);
  CHECK(column(rollout, "rewards") == std::vector<float>{1, 0.25f, 0, 2});
}

TEST_CASE("advantages stand on the tokens of the group's samples, and metrics on those of the loss") {
  rollout::Rollout rollout = four_samples({1, 0, 0.5f, 0.5f});
  const Metrics metrics = add_advantages(plain(), rollout);
  const auto advantages = column(rollout, "advantages");
  for (int64_t i = 0; i < 4; ++i) {
    const float wanted = std::vector<float>{0.5f, -0.5f, 0, 0}[i];
    const auto row = rollout.batch.row<float>("advantages", i), mask = rollout.batch.row<float>("token_mask", i);
    for (size_t t = 0; t < row.size(); ++t) {
      if (mask[t] == 1) CHECK(row[t] == wanted);
    }
  }
  CHECK(metrics.at("advantages/max") == 0.5);
  CHECK(metrics.at("advantages/min") == -0.5);
  CHECK(metrics.at("advantages/mean") == doctest::Approx((0.5 - 3 * 0.5) / 8));
  CHECK(metrics.at("baseline_reward/pct_mixed") == 1);
}

TEST_CASE("a sample without a reward counts in no baseline and no mean") {
  for (const char* estimator : {"grpo", "gdpo", "reinforce_plus_plus"}) {
    CAPTURE(estimator);
    config::RunConfig config = plain();
    config.grpo.adv_estimator.name = estimator;
    // Row 0 has none; what stands there must not matter.
    std::vector<std::vector<float>> results;
    for (const float nothing : {0.0f, 100.0f}) {
      rollout::Rollout rollout = four_samples({nothing, 1, 0, 0.5f});
      rollout.batch.set("invalid", data::Tensor::of<uint8_t>({1, 0, 0, 0}), data::Axis::sample);
      rollout.batch.at("sample_mask").span<float>()[0] = 0;
      rollout.components = {{"a", {nothing, 1, 0, 1}}, {"b", {nothing, 0, 1, 1}}};
      const Metrics metrics = add_advantages(config, rollout);
      CHECK(metrics.at("advantages/max") < 10);
      CHECK(mean_reward(rollout.batch) == 0.5);
      results.push_back(column(rollout, "advantages"));
      results.back().erase(results.back().begin(), results.back().begin() + 3);  // those of row 0
    }
    CHECK(results[0] == results[1]);
  }
  CHECK(mean_reward(four_samples({1, 0, 0, 1}).batch) == 0.5);
}

TEST_CASE("rows with equal prompts are one group, wherever they stand") {
  rollout::Rollout rollout = one_group({1, 0, 0, 0});
  add_advantages(plain(), rollout);
  CHECK(rollout.batch.row<float>("advantages", 0)[2] == 0.75f);
  CHECK(rollout.batch.row<float>("advantages", 3)[2] == -0.25f);
}

TEST_CASE("a sample without a reward counts in nobody's baseline") {
  config::RunConfig config = plain();
  rollout::Rollout rollout = one_group({0.8f, 0, 0.4f, 0.2f});
  rollout.batch.at("invalid").span<uint8_t>()[1] = 1;
  CHECK(reward_std(config, rollout)[0] == doctest::Approx(std::sqrt(0.28 / 3)));
  add_advantages(config, rollout);
  for (const auto& [row, reward] : {std::pair{0, 0.8}, {2, 0.4}, {3, 0.2}})
    CHECK(rollout.batch.row<float>("advantages", row)[2] == doctest::Approx(reward - 1.4 / 3));
}

TEST_CASE("dynamic sampling judges groups as a whole, also under a leave-one-out baseline") {
  config::RunConfig config;
  REQUIRE(config.grpo.use_leave_one_out_baseline);
  for (const float odd : {1.0f, 0.0f}) {
    CAPTURE(odd);
    const rollout::Rollout rollout = one_group({odd, 1 - odd, 1 - odd, 1 - odd});
    config.compat.dynamic_sampling_by_sample = false;
    for (const float std : reward_std(config, rollout)) CHECK(std == doctest::Approx(0.5));
    // The odd one has three equal siblings, the others two and the odd one.
    config.compat.dynamic_sampling_by_sample = true;
    const std::vector<float> by_sample = reward_std(config, rollout);
    CHECK(by_sample[0] == 0);
    for (size_t i = 1; i < 4; ++i) CHECK(by_sample[i] == doctest::Approx(std::sqrt(1.0 / 3)));
  }
  config.compat.dynamic_sampling_by_sample = false;
  for (const float std : reward_std(config, one_group({0.7f, 0.7f, 0.7f, 0.7f}))) CHECK(std == 0);
}

TEST_CASE("samples that the overlong filter takes out of the loss vote in no baseline") {
  config::RunConfig config = plain();
  config.grpo.overlong_filtering = true;
  const auto advantages_of = [&] {
    rollout::Rollout rollout = one_group({0.8f, 0, 0.4f, 0.2f});  // row 1 was cut off
    shape(config.grpo, rollout);
    add_advantages(config, rollout);
    return std::vector{rollout.batch.row<float>("advantages", 0)[2], rollout.batch.row<float>("advantages", 2)[2],
                       rollout.batch.row<float>("advantages", 3)[2]};
  };
  const std::vector<double> rewards = {0.8, 0.4, 0.2};
  for (size_t i = 0; i < 3; ++i) CHECK(advantages_of()[i] == doctest::Approx(rewards[i] - 1.4 / 3));
  config.compat.filtered_samples_vote = true;
  for (size_t i = 0; i < 3; ++i) CHECK(advantages_of()[i] == doctest::Approx(rewards[i] - 1.4 / 4));
}

TEST_CASE("a group that varies by what was cut off alone teaches nothing") {
  config::RunConfig config = plain();
  config.grpo.overlong_filtering = true;
  rollout::Rollout rollout = one_group({0, 1, 0, 0});  // row 1 was cut off
  shape(config.grpo, rollout);
  for (const float std : reward_std(config, rollout)) CHECK(std == 0);
  config.compat.filtered_samples_vote = true;
  for (const float std : reward_std(config, rollout)) CHECK(std == doctest::Approx(0.5));
}

TEST_CASE("what a filter takes out of the loss might as well not be there, whatever the estimator") {
  for (const char* estimator : {"grpo", "gdpo", "reinforce_plus_plus"}) {
    for (const bool leave_one_out : {false, true}) {
      for (const bool by_logprobs : {false, true}) {
        CAPTURE(estimator);
        CAPTURE(leave_one_out);
        CAPTURE(by_logprobs);
        config::RunConfig config;
        config.grpo.adv_estimator.name = estimator;
        config.grpo.adv_estimator.use_leave_one_out_baseline = leave_one_out;
        config.grpo.overlong_filtering = !by_logprobs;
        if (by_logprobs) config.grpo.seq_logprob_error_threshold = 1.5;
        rollout::Rollout all = one_group({1, 1, 0, 0.5f});
        all.components = {{"a", {1, 1, 0, 0}}, {"b", {0, 1, 0, 0.5f}}};
        all.responses.resize(4), all.prompts.resize(4), all.answers.resize(4), all.why_invalid.resize(4);
        if (by_logprobs) all.batch.at("generation_logprobs").span<float>()[6] = 1;  // of row 1: exp(1) > 1.5
        const std::vector<int64_t> others = {0, 2, 3};
        rollout::Rollout alone = all.select(others);
        for (rollout::Rollout* rollout : {&all, &alone}) {
          shape(config.grpo, *rollout);
          add_advantages(config, *rollout);
        }
        CHECK(column(all, "sample_mask") == std::vector<float>{1, 0, 1, 1});
        double largest = 0;
        for (int64_t i = 0; i < 3; ++i) {
          const auto got = all.batch.row<float>("advantages", others[i]),
                     want = alone.batch.row<float>("advantages", i);
          for (size_t t = 0; t < want.size(); ++t) {
            CHECK(got[t] == doctest::Approx(want[t]));
            largest = std::max<double>(largest, std::abs(want[t]));
          }
        }
        CHECK(largest > 0.1);
      }
    }
  }
}

TEST_CASE("how far rewards vary is told of them as they were before shaping") {
  config::RunConfig config = plain();
  config.grpo.reward_shaping.enabled = true;
  config.grpo.reward_shaping.overlong_buffer_length = 2;
  config.grpo.reward_shaping.max_response_length = 3;
  rollout::Rollout rollout = four_samples({1, 1, 0, 1});  // the first group's responses have different lengths
  shape(config.grpo, rollout);
  CHECK(column(rollout, "rewards")[0] != column(rollout, "rewards")[1]);
  const std::vector<float> std = reward_std(config, rollout);
  CHECK(std[0] == 0);
  CHECK(std[1] == 0);
  CHECK(std[2] == doctest::Approx(std::sqrt(0.5)));
}

TEST_CASE("under gdpo a group varies where a part of its rewards does") {
  config::RunConfig config = plain();
  config.grpo.adv_estimator.name = "gdpo";
  config.grpo.adv_estimator.reward_weights = {2, 1};
  rollout::Rollout rollout = four_samples({1, 1, 1, 1});
  rollout.components = {{"a", {1, 0, 1, 1}}, {"b", {0, 1, 0, 0}}};
  const std::vector<float> gdpo = reward_std(config, rollout);
  for (const size_t row : {0, 1}) CHECK(gdpo[row] == doctest::Approx(std::sqrt(0.5)));
  for (const size_t row : {2, 3}) CHECK(gdpo[row] == 0);
  // Such a group has advantages.
  add_advantages(config, rollout);
  CHECK(rollout.batch.row<float>("advantages", 0)[2] > 0.5f);
  config.compat.dynamic_sampling_by_sample = true;
  for (const float std : reward_std(config, rollout)) CHECK(std == 0);
  config.compat.dynamic_sampling_by_sample = false;
  config.grpo.adv_estimator.name = "grpo";
  for (const float std : reward_std(config, rollout)) CHECK(std == 0);
}

TEST_CASE("advantages are clipped, and samples whose log-probs disagree leave the loss") {
  config::RunConfig config = plain();
  config.grpo.advantage_clip_high = 0.2;
  config.grpo.advantage_clip_low = -0.1;
  config.grpo.seq_logprob_error_threshold = 1.5;
  rollout::Rollout rollout = four_samples({1, 0, 1, 0});
  rollout.batch.at("generation_logprobs").span<float>()[2] = 1;  // row 0: exp(1) > 1.5
  const Metrics metrics = add_advantages(config, rollout);
  CHECK(column(rollout, "sample_mask") == std::vector<float>{0, 1, 1, 1});
  CHECK(metrics.at("num_masked_seqs_by_logprob_error") == 1);
  CHECK(metrics.at("max_seq_mult_prob_error") == doctest::Approx(std::exp(1.0)));
  CHECK(rollout.batch.row<float>("advantages", 2)[2] == 0.2f);
  CHECK(rollout.batch.row<float>("advantages", 3)[2] == -0.1f);
  CHECK(metrics.at("advantages/max") == doctest::Approx(0.2));
}

TEST_CASE("log-probs are computed where something needs them") {
  toy::InProcess workers;
  config::RunConfig config;
  config.policy.logprob_batch_size = 3;
  cluster::Policy policy(workers.group, config.policy, workers.started);
  CHECK(policy.loss_needs().prev_logprobs);
  CHECK_FALSE(policy.loss_needs().reference_logprobs);
  rollout::Rollout rollout = four_samples({1, 0, 0, 0});
  rollout.batch.at("prev_logprobs").span<float>()[0] = 9;
  add_logprobs(config, policy, rollout.batch);
  const float uniform = static_cast<float>(-std::log(12.0));
  CHECK(rollout.batch.row<float>("prev_logprobs", 1)[0] == 0);
  CHECK(rollout.batch.row<float>("prev_logprobs", 1)[4] == doctest::Approx(uniform));
  CHECK(column(rollout, "reference_policy_logprobs") == std::vector<float>(16, 0));
  config.loss_fn.use_kl_in_reward = true;  // the loss does not want them, the reward does
  add_logprobs(config, policy, rollout.batch);
  CHECK(rollout.batch.row<float>("reference_policy_logprobs", 1)[4] == doctest::Approx(uniform));
  config.grpo.skip_reference_policy_logprobs_calculation = true;
  add_logprobs(config, policy, rollout.batch);
  CHECK(column(rollout, "reference_policy_logprobs") == std::vector<float>(16, 0));
}

TEST_CASE("a generator's log-probs before filters come to those after them") {
  std::vector<float> generation = {0, -2, -3, -4, -5};
  const std::vector<float> before = {-1, -2.5F, -3.5F, -4.5F, -1}, after = {-0.5F, -2, -INFINITY, -3, -0.25F};
  apply_filters({before, after}, std::vector<float>{0, 1, 1, 1, 0}, generation);
  // Outside of the mask, and where the policy removes the token, nothing is changed.
  CHECK(generation == std::vector<float>{0, -1.5F, -3, -2.5F, -5});
}

TEST_CASE("the policy is asked for the part that filters keep if the generator's log-probs are before them") {
  cluster::protocol::Start start = toy::start_command();
  start.transform.top_k = 1;
  config::RunConfig config;
  config.policy.generation.top_k = 1;
  for (const bool filtered : {true, false}) {
    toy::InProcess workers(start);
    cluster::Policy policy(workers.group, config.policy, workers.started);
    config.facts.filtered_logprobs = filtered;
    rollout::Rollout rollout = four_samples({1, 0, 0, 0});
    data::Batch& batch = rollout.batch;
    batch.set("advantages", data::Tensor::of(std::vector<float>(16, 1)), data::Axis::token);
    add_logprobs(config, policy, batch);
    policy.train(batch, 3.0, std::nan(""));  // tokens are no longer equally likely
    const data::Tensor after = policy.logprobs(batch, cluster::Weights::current),
                       before = policy.logprobs(batch, cluster::Weights::current, cluster::Filters::none);
    for (float& value : batch.at("generation_logprobs").span<float>()) value = -7;
    add_logprobs(config, policy, batch);
    int changed = 0;
    for (int64_t i = 0; i < batch.tokens(); ++i) {
      const float gap = after.span<float>()[i] - before.span<float>()[i];
      const bool counts = !filtered && batch.at("token_mask").span<float>()[i] > 0 && std::isfinite(gap);
      CHECK(batch.at("generation_logprobs").span<float>()[i] == doctest::Approx(counts ? -7 + gap : -7));
      changed += counts && gap > 1e-3F;
    }
    CHECK((changed > 0) == !filtered);
  }
}

TEST_CASE("filters make log-probs necessary only where the generator leaves them out") {
  config::RunConfig config = plain();
  config.policy.generation.top_p = 0.9;
  CHECK_FALSE(needs_prev_logprobs(config, {.prev_logprobs = false}));
  config.facts.filtered_logprobs = false;
  CHECK(needs_prev_logprobs(config, {.prev_logprobs = false}));
  config.policy.generation.top_p = 1;
  CHECK_FALSE(needs_prev_logprobs(config, {.prev_logprobs = false}));
}

TEST_CASE("log-probs that nobody computed are compared with nothing") {
  rollout::Rollout rollout = four_samples({1, 0, 0, 0});
  CHECK(add_advantages(plain(), rollout).contains("max_seq_mult_prob_error"));
  const Metrics metrics = add_advantages(plain(), rollout, /*prev_known=*/false);
  for (const auto& [name, value] : metrics) CHECK_MESSAGE(name.find("seq_mult_prob_error") == name.npos, name);
  CHECK(metrics.contains("advantages/max"));

  config::RunConfig config = plain();
  CHECK(needs_prev_logprobs(config, {.prev_logprobs = true}));
  CHECK_FALSE(needs_prev_logprobs(config, {.prev_logprobs = false}));
  config.loss_fn.use_kl_in_reward = true;
  CHECK(needs_prev_logprobs(config, {.prev_logprobs = false}));
  config = plain();
  config.grpo.seq_logprob_error_threshold = 2;
  CHECK(needs_prev_logprobs(config, {.prev_logprobs = false}));
}

TEST_CASE("the mean reward is that of samples that have one") {
  rollout::Rollout rollout = four_samples({1, 0, 0, 0});
  const auto invalid = rollout.batch.at("invalid").span<uint8_t>();
  CHECK(mean_reward(rollout.batch) == 0.25);
  invalid[1] = invalid[2] = 1;
  CHECK(mean_reward(rollout.batch) == 0.5);
  std::ranges::fill(invalid, 1);
  CHECK(mean_reward(rollout.batch) == 0);
}
