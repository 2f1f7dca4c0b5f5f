#include "core/algorithm/grpo_step.hpp"

#include <cmath>

#include "core/algorithm/advantage/advantage.hpp"
#include "core/algorithm/advantage/baseline.hpp"
#include "core/algorithm/run/metrics.hpp"
#include "core/algorithm/advantage/removed_tokens.hpp"
#include "core/algorithm/reward/reward.hpp"
#include "core/algorithm/reward/penalty.hpp"
#include "core/algorithm/run/sample_log.hpp"
#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

// Tokens that the model wrote.
std::vector<int64_t> response_lengths(const data::Batch& batch) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto mask = batch.row<float>("token_mask", i);
    lengths.push_back(std::count(mask.begin(), mask.end(), 1.0f));
  }
  return lengths;
}

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

// A part of the reward that a sample does not have is as the others' of its group: gdpo whitens over all samples.
void make_neutral(std::vector<float>& component, const std::vector<int64_t>& groups, const std::vector<float>& valid,
                  bool leave_one_out) {
  const BaselineStd moments = baseline_and_std(groups, component, valid, leave_one_out);
  for (size_t i = 0; i < component.size(); ++i) {
    if (valid[i] == 0) component[i] = moments.baseline[i];
  }
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

std::vector<float> scored(const data::Batch& batch) {
  std::vector<float> valid;
  for (const uint8_t invalid : batch.at("invalid").span<uint8_t>()) valid.push_back(invalid ? 0.0f : 1.0f);
  return valid;
}

void shape(const config::GrpoConfig& config, rollout::Rollout& rollout) {
  data::Batch& batch = rollout.batch;
  const auto rewards = batch.at("rewards").span<float>();
  const auto truncated = std::as_const(batch).at("truncated").span<uint8_t>();
  if (const auto& scaling = config.reward_scaling; scaling.enabled) {
    const RewardScaling scale = {scaling.source_min, scaling.source_max, scaling.target_min, scaling.target_max};
    scale_rewards(rewards, scale);
    for (auto& [name, component] : rollout.components) scale_rewards(component, scale);
  }
  if (const auto& shaping = config.reward_shaping; shaping.enabled) {
    batch.set("unshaped_rewards", batch.at("rewards").clone(), data::Axis::sample);
    shape_rewards(rewards, response_lengths(batch), truncated,
                  {shaping.overlong_buffer_length, shaping.overlong_buffer_penalty, shaping.max_response_length,
                   shaping.stop_properly_penalty_coef});
  }
  if (config.overlong_filtering) filter_overlong(batch.at("sample_mask").span<float>(), truncated);
}

void judge(const Grpo& run, rollout::Rollout& rollout) {
  penalize(run.config.reward_penalties, run.text, rollout);
  shape(run.config.grpo, rollout);
}

bool needs_prev_logprobs(const config::RunConfig& config, const cluster::LossNeeds& loss) {
  return loss.prev_logprobs || config.grpo.seq_logprob_error_threshold || config.loss_fn.use_kl_in_reward;
}

void add_logprobs(const config::RunConfig& config, cluster::Policy& policy, data::Batch& batch) {
  const data::Tensor zeros(data::DType::f32, {batch.tokens()});
  const cluster::LossNeeds& needs = policy.loss_needs();
  const bool prev = needs_prev_logprobs(config, needs);
  const bool reference = (needs.reference_logprobs || config.loss_fn.use_kl_in_reward) &&
                         !config.grpo.skip_reference_policy_logprobs_calculation;
  batch.set("prev_logprobs", prev ? policy.logprobs(batch, cluster::Weights::current) : zeros, data::Axis::token);
  zero_removed(batch.at("prev_logprobs").span<float>());
  batch.set("reference_policy_logprobs", reference ? policy.logprobs(batch, cluster::Weights::reference) : zeros,
            data::Axis::token);
}

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
  const std::vector<float> mask = loss_mask(batch), valid = scored(batch);
  AdvantageInput input;
  input.cu_seqlens = batch.cu_seqlens();
  input.group_of = groups;
  input.rewards = rewards;
  input.valid = valid;
  input.mask = mask;
  input.logprobs = batch.at("prev_logprobs").span<float>();
  input.reference = batch.at("reference_policy_logprobs").span<float>();
  for (auto& [name, values] : rollout.components) {
    make_neutral(values, groups, valid, config.grpo.adv_estimator.use_leave_one_out_baseline);
    input.components[name] = values;
  }
  Advantages result = estimate_advantages(advantage_options(config), input);
  clip_advantages(result.advantages, config.grpo.advantage_clip_low, config.grpo.advantage_clip_high);

  metrics.merge(advantage_metrics(result.advantages, mask));
  const BaselineStd baseline = baseline_and_std(groups, rewards, valid, config.grpo.use_leave_one_out_baseline);
  metrics.merge(baseline_metrics(baseline.baseline));
  metrics.insert(result.metrics.begin(), result.metrics.end());
  batch.set("advantages", data::Tensor::of(result.advantages), data::Axis::token);
  return metrics;
}

std::vector<float> reward_std(const config::GrpoConfig& config, const data::Batch& batch) {
  const auto rewards = batch.at("rewards").span<float>();
  const auto unshaped = batch.has("unshaped_rewards") ? batch.at("unshaped_rewards").span<float>() : rewards;
  return baseline_and_std(prompt_groups(batch), rewards, scored(batch), config.use_leave_one_out_baseline, unshaped)
      .std;
}

namespace {

// The share of prompts with a sample that has a reward, of those with samples that could be scored; `k` samples each.
double pass_rate(const data::Batch& batch, int64_t k) {
  const auto rewards = batch.at("rewards").span<float>();
  const std::vector<float> valid = scored(batch);
  double prompts = 0, passed = 0;
  for (int64_t begin = 0; begin < batch.size(); begin += k) {
    bool any_valid = false, any_passed = false;
    for (int64_t i = begin; i < begin + k; ++i) {
      any_valid |= valid[i] != 0;
      any_passed |= valid[i] != 0 && rewards[i] > 0;
    }
    prompts += any_valid, passed += any_passed;
  }
  return prompts > 0 ? passed / prompts : 0;
}

}  // namespace

Metrics validate(Grpo& run, telemetry::Timer& timer, const UpdateGenerators& update_generators) {
  const config::GrpoConfig& grpo = run.config.grpo;
  const auto& all = run.prompts.validation();
  // Whole batches, as NeMo-RL runs max_val_samples // val_batch_size of them; one that is larger than that is cut.
  const int64_t most = grpo.max_val_samples.value_or(static_cast<int64_t>(all.size()));
  const int64_t batch_size = std::min(grpo.val_batch_size.value_or(most), most);
  const int64_t count =
      batch_size == 0 ? 0 : std::min(most / batch_size * batch_size, static_cast<int64_t>(all.size()));
  if (count == 0) return {};
  const auto time = timer.measure("validation");
  update_generators();
  std::vector<const data::Datum*> prompts;
  for (int64_t i = 0; i < count; ++i) prompts.push_back(&all[i]);
  // Its samples are a stream of their own, the same at every validation: curves differ by the weights alone.
  const uint64_t seed = static_cast<uint64_t>(grpo.seed) ^ 0x76616c6964617465ull;
  const rollout::Plan plan{run.sampling,          count, grpo.val_num_generations_per_prompt, seed, 0, 0,
                           grpo.max_rollout_turns};
  const rollout::Rollout rollout = rollout::run_rollout(run.generation, run.environments, run.text, prompts, plan);
  run.generation.sleep(
      std::min<int64_t>(1, run.config.policy.generation.colocated.sleep_level));  // it keeps its weights
  Metrics metrics = rollout.metrics;
  const auto rewards = rollout.batch.at("rewards").span<float>();
  metrics["accuracy"] = mean_reward(rollout.batch);
  metrics["avg_length"] = rollout.metrics.at("mean_gen_tokens_per_sample");
  if (const int64_t k = grpo.val_num_generations_per_prompt; k > 1) metrics["pass_k"] = pass_rate(rollout.batch, k);
  log_validation(run, rollout, run.progress.total_steps);
  for (int64_t i = 0; i < std::min(run.config.logger.num_val_samples_to_print, count); ++i) {
    run.console.line(fmt::format("validation sample: {} -> {} (reward {})", rollout.prompts[i]->text,
                                 rollout.responses[i], rewards[i]));
  }
  return metrics;
}

double mean(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double mean_reward(const data::Batch& batch) {
  const std::vector<float> valid = scored(batch);
  const auto rewards = batch.at("rewards").span<float>();
  std::vector<float> of_valid;
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i] != 0) of_valid.push_back(rewards[i]);
  }
  return mean(of_valid);
}

}  // namespace hexad::algorithm
