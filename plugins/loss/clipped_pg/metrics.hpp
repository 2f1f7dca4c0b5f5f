// The metrics that the loss reports, under NeMo-RL's names.
#pragma once
#include <hexad/loss.hpp>

#include "totals.hpp"

namespace clipped_pg {

// In the order of Metric. Sums are divided by global counts already: they add up over micro-batches and ranks.
inline constexpr hexad_metric_spec kMetricSpecs[] = {
    hexad::sdk::metric("loss", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("kl_penalty", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("token_mult_prob_error", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("gen_kl_error", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("policy_kl_error", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("js_divergence_error", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("sampling_importance_ratio", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("is_oob_ratio", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("approx_entropy", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("probs_ratio", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("probs_ratio_clamped", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("probs_ratio_min", HEXAD_REDUCE_MIN),
    hexad::sdk::metric("probs_ratio_max", HEXAD_REDUCE_MAX),
    hexad::sdk::metric("probs_ratio_clamped_min", HEXAD_REDUCE_MIN),
    hexad::sdk::metric("probs_ratio_clamped_max", HEXAD_REDUCE_MAX),
    hexad::sdk::metric("positive_nll_loss", HEXAD_REDUCE_SUM),
    hexad::sdk::metric("num_valid_samples", HEXAD_REDUCE_SUM),
};
static_assert(std::size(kMetricSpecs) == kMetricCount);

}  // namespace clipped_pg
