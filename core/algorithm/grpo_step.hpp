// The parts of a GRPO step between rollout and training, each a function of the batch.
#pragma once
#include <functional>

#include "core/algorithm/grpo.hpp"
#include "core/telemetry/timer.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// Scaling, shaping, overlong filtering, in NeMo-RL's order; changes `rewards` and `sample_mask`. Where rewards are shaped,
// adds `unshaped_rewards` (f32 [B]).
void shape(const config::GrpoConfig& config, rollout::Rollout& rollout);

// What becomes of rewards between environment and advantage: penalties, then shape().
void judge(const Grpo& run, rollout::Rollout& rollout);

// Whether anything needs prev_logprobs: a loss on-policy by decree (loss_fn.force_on_policy_ratio) does not.
bool needs_prev_logprobs(const config::RunConfig& config, const cluster::LossNeeds& loss);

// Adds prev_logprobs and reference_policy_logprobs (f32 [T]) as far as the loss and the config need them; zeros otherwise.
void add_logprobs(const config::RunConfig& config, cluster::Policy& policy, data::Batch& batch);

// Adds `advantages` (f32 [T]), after the log-prob error mask. Returns metrics (advantages/*, baseline_reward/*, and, of
// prev_logprobs that are known and not zeros, *seq_mult_prob_error).
Metrics add_advantages(const config::RunConfig& config, rollout::Rollout& rollout, bool prev_known = true);

// The standard deviation of every sample's group [B], of rewards as they were before shaping.
std::vector<float> reward_std(const config::GrpoConfig& config, const data::Batch& batch);

// What gives the generators the newest weights, if they do not have them.
using UpdateGenerators = std::function<void()>;

// Runs the validation prompts on the newest weights; returns accuracy, avg_length and, with several samples a prompt, pass_k.
Metrics validate(Grpo& run, telemetry::Timer& timer, const UpdateGenerators& update_generators);

// [B] 1 for samples that have a reward: others count in no baseline and no mean.
std::vector<float> scored(const data::Batch& batch);

// The mean, 0 of nothing.
double mean(std::span<const float> values);

// The mean of the rewards of samples that have one.
double mean_reward(const data::Batch& batch);

}  // namespace hexad::algorithm
