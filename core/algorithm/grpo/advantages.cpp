#include "core/algorithm/grpo/phases.hpp"

#include <algorithm>

#include "core/algorithm/advantage/advantage.hpp"
#include "core/algorithm/advantage/baseline.hpp"
#include "core/algorithm/reward/reward.hpp"

namespace hexad::algorithm {
namespace {

// token_mask * sample_mask, with the first position of every sequence out: it has no log-prob.
std::vector<float> loss_mask(const data::Batch& batch) {
  std::vector<float> mask(batch.tokens(), 0.0f);
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto token_mask = batch.row<float>("token_mask", i);
    const float sample = batch.row<float>("sample_mask", i)[0];
    for (size_t t = 1; t < token_mask.size(); ++t) mask[batch.cu_seqlens()[i] + t] = token_mask[t] * sample;
  }
  return mask;
}

// Rows with equal prompts form a group, also when they came from different records of the data.
std::vector<int64_t> prompt_groups(const data::Batch& batch) {
  std::vector<std::span<const int64_t>> prompts;
  for (int64_t i = 0; i < batch.size(); ++i) {
    prompts.push_back(batch.row<int64_t>("input_ids", i).first(batch.row<int64_t>("prompt_length", i)[0]));
  }
  return group_by_prompt(prompts);
}

AdvantageOptions advantage_options(const config::RunConfig& config) {
  const config::AdvEstimatorConfig& estimator = config.grpo.adv_estimator;
  AdvantageOptions options;
  options.estimator = estimator_named(estimator.name);
  options.normalize_rewards = estimator.normalize_rewards;
  options.use_leave_one_out_baseline = estimator.use_leave_one_out_baseline;
  options.minus_baseline = estimator.minus_baseline;
  options.reward_weights = estimator.reward_weights;
  options.use_kl_in_reward = config.loss_fn.use_kl_in_reward;
  options.kl_coefficient = config.loss_fn.reference_policy_kl_penalty;
  options.kl_type = kl_type_named(config.loss_fn.reference_policy_kl_type);
  return options;
}

}  // namespace

Metrics add_advantages(const config::RunConfig& config, rollout::Rollout& rollout, bool prev_known) {
  data::Batch& batch = rollout.batch;
  const std::vector<int64_t> groups = prompt_groups(batch);
  const auto rewards = batch.at("rewards").span<float>();
  Metrics metrics;
  if (prev_known)
    metrics =
        mask_logprob_errors({batch.cu_seqlens(), batch.at("token_mask").span<float>(),
                             batch.at("generation_logprobs").span<float>(), batch.at("prev_logprobs").span<float>()},
                            rewards, config.grpo.seq_logprob_error_threshold, batch.at("sample_mask").span<float>());
  const std::vector<float> mask = loss_mask(batch), valid = voters(batch, config.compat.filtered_samples_vote);
  AdvantageInput input;
  input.cu_seqlens = batch.cu_seqlens();
  input.group_of = groups;
  input.rewards = rewards;
  input.valid = valid;
  input.mask = mask;
  input.logprobs = batch.at("prev_logprobs").span<float>();
  input.reference = batch.at("reference_policy_logprobs").span<float>();
  for (const auto& [name, values] : rollout.components) input.components[name] = values;
  Advantages result = estimate_advantages(advantage_options(config), input);
  clip_advantages(result.advantages, config.grpo.advantage_clip_low, config.grpo.advantage_clip_high);

  metrics.merge(advantage_metrics(result.advantages, mask));
  const BaselineStd baseline = baseline_and_std(groups, rewards, valid, config.grpo.use_leave_one_out_baseline);
  metrics.merge(baseline_metrics(baseline.baseline));
  metrics.insert(result.metrics.begin(), result.metrics.end());
  batch.set("advantages", data::Tensor::of(result.advantages), data::Axis::token);
  return metrics;
}

std::vector<float> reward_std(const config::RunConfig& config, const rollout::Rollout& rollout) {
  const data::Batch& batch = rollout.batch;
  const auto rewards = batch.at("rewards").span<float>();
  const auto unshaped = batch.has("unshaped_rewards") ? batch.at("unshaped_rewards").span<float>() : rewards;
  const bool leave_one_out = config.compat.dynamic_sampling_by_sample && config.grpo.use_leave_one_out_baseline;
  const std::vector<int64_t> groups = prompt_groups(batch);
  const std::vector<float> valid = voters(batch, config.compat.filtered_samples_vote);
  std::vector<float> spread = baseline_and_std(groups, rewards, valid, leave_one_out, unshaped).std;
  if (config.grpo.adv_estimator.name != "gdpo" || config.compat.dynamic_sampling_by_sample) return spread;
  for (const auto& [name, part] : rollout.components)  // they may differ where their sum does not
    std::ranges::transform(spread, baseline_and_std(groups, part, valid, false).std, spread.begin(), std::ranges::max);
  return spread;
}

Metrics advantage_metrics(std::span<const float> advantages, std::span<const float> mask) {
  double total = 0, count = 0, largest = 0, smallest = 0;
  for (size_t t = 0; t < advantages.size(); ++t) {
    if (mask[t] == 0) continue;
    largest = count == 0 ? advantages[t] : std::max<double>(largest, advantages[t]);
    smallest = count == 0 ? advantages[t] : std::min<double>(smallest, advantages[t]);
    total += advantages[t];
    count += 1;
  }
  return {
      {"advantages/mean", count > 0 ? total / count : 0}, {"advantages/max", largest}, {"advantages/min", smallest}};
}

Metrics baseline_metrics(std::span<const float> baseline) {
  const double count = std::max<double>(1, static_cast<double>(baseline.size()));
  const double zeros = static_cast<double>(std::count(baseline.begin(), baseline.end(), 0.0f));
  const double ones = static_cast<double>(std::count(baseline.begin(), baseline.end(), 1.0f));
  const double mixed = static_cast<double>(baseline.size()) - zeros - ones;
  return {{"baseline_reward/pct_0", zeros / count},
          {"baseline_reward/pct_1", ones / count},
          {"baseline_reward/pct_mixed", mixed / count}};
}

}  // namespace hexad::algorithm
