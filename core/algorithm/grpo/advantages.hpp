// Advantages of a step's samples, in place.
#pragma once
#include "core/config/typed/run_config.hpp"
#include "core/rollout/rollout.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// Adds `advantages` (f32 [T]), after the log-prob error mask. Returns metrics (advantages/*, baseline_reward/*, and, of
// prev_logprobs that are known and not zeros, *seq_mult_prob_error).
Metrics add_advantages(const config::RunConfig& config, rollout::Rollout& rollout, bool prev_known = true);

// The standard deviation of every sample's group [B], of rewards as they were before shaping.
std::vector<float> reward_std(const config::GrpoConfig& config, const data::Batch& batch);

}  // namespace hexad::algorithm
