#include "core/algorithm/grpo/phases.hpp"

#include <cmath>

#include "core/algorithm/reward/reward.hpp"

namespace hexad::algorithm {
namespace {

// The generator's log-probs are before filters, and training's are after them.
bool has_filters_to_apply(const config::RunConfig& config) {
  const config::GenerationConfig& sampling = config.policy.generation;
  return !config.facts.filtered_logprobs && (sampling.top_p < 1 || sampling.top_k);
}

}  // namespace

bool needs_prev_logprobs(const config::RunConfig& config, const cluster::LossNeeds& loss) {
  return loss.prev_logprobs || config.grpo.seq_logprob_error_threshold || config.loss_fn.use_kl_in_reward ||
         has_filters_to_apply(config);
}

void apply_filters(const FilteredLogprobs& policy, std::span<const float> token_mask, std::span<float> generation) {
  for (size_t i = 0; i < generation.size(); ++i)
    if (token_mask[i] > 0 && std::isfinite(policy.after[i])) generation[i] += policy.after[i] - policy.before[i];
}

void add_logprobs(const config::RunConfig& config, cluster::Policy& policy, data::Batch& batch) {
  const data::Tensor zeros(data::DType::f32, {batch.tokens()});
  const cluster::LossNeeds& needs = policy.loss_needs();
  const bool prev = needs_prev_logprobs(config, needs);
  const bool reference = (needs.reference_logprobs || config.loss_fn.use_kl_in_reward) &&
                         !config.grpo.skip_reference_policy_logprobs_calculation;
  batch.set("prev_logprobs", prev ? policy.logprobs(batch, cluster::Weights::current) : zeros, data::Axis::token);
  if (has_filters_to_apply(config)) {
    const data::Tensor before = policy.logprobs(batch, cluster::Weights::current, cluster::Filters::none);
    apply_filters({.before = before.span<float>(), .after = batch.at("prev_logprobs").span<float>()},
                  batch.at("token_mask").span<float>(), batch.at("generation_logprobs").span<float>());
  }
  zero_removed(batch.at("prev_logprobs").span<float>());
  batch.set("reference_policy_logprobs", reference ? policy.logprobs(batch, cluster::Weights::reference) : zeros,
            data::Axis::token);
}

}  // namespace hexad::algorithm
