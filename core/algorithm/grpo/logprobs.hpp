// Log-probs of a step's samples under the policy before the update, and under the reference policy.
#pragma once
#include "core/cluster/policy.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/data/batch.hpp"

namespace hexad::algorithm {

// Whether anything needs prev_logprobs: a loss on-policy by decree (loss_fn.force_on_policy_ratio) does not.
bool needs_prev_logprobs(const config::RunConfig& config, const cluster::LossNeeds& loss);

// Adds prev_logprobs and reference_policy_logprobs (f32 [T]) as far as the loss and the config need them; zeros
// otherwise.
void add_logprobs(const config::RunConfig& config, cluster::Policy& policy, data::Batch& batch);

}  // namespace hexad::algorithm
