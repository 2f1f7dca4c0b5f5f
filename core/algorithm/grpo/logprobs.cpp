#include "core/algorithm/grpo/phases.hpp"

#include "core/algorithm/reward/reward.hpp"

namespace hexad::algorithm {

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

}  // namespace hexad::algorithm
