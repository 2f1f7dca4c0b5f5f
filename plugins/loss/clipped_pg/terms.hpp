// The terms of the loss, one function each: they add a token's share to the totals and its gradient to the sequence's.
#pragma once
#include "importance.hpp"
#include "kl.hpp"
#include "objective.hpp"
#include "totals.hpp"

namespace clipped_pg {

// The policy gradient with its ratio and importance weight, and the metrics of both. Starts the token's gradient;
// returns the part of it that goes to all tokens of the sequence alike (sequence_ratios): spread_gradient.
CLIPPED_PG_BOTH double add_actor(const Options& options, const Sequence& sequence, size_t t, Totals& totals) {
  const Token token = sequence.token(t);
  const double token_weight = sequence.token_weight(token);
  const double loss_weight = sequence.loss_weight(options, token);
  const double now = options.cispo ? token.held : token.current;  // CISPO's ratio is a weight
  const double ratio = options.sequence_ratios ? sequence.sums.ratio : exp_f32(now - token.previous);
  const Objective pg = objective(options, ratio, token.current, token.advantage);
  const Weight weight = importance_weight(options, token, sequence.sums);
  const double applied = options.importance_correction ? weight.value : 1;

  totals.actor += applied * pg.value * loss_weight;
  double grad = 0, by_ratio = 0;
  if (loss_weight != 0) {
    grad = applied * pg.by_current * loss_weight;
    by_ratio = applied * pg.by_ratio * ratio * loss_weight;
  }
  sequence.grad[t] = static_cast<float>(options.sequence_ratios ? grad : grad + by_ratio);

  totals.metrics[kProbsRatio] += pg.ratio * token_weight;
  totals.metrics[kProbsRatioClamped] += pg.clamped * token_weight;
  if (options.truncation != Truncation::seq_mask_tis) totals.metrics[kIsOobRatio] += weight.outside * token_weight;
  if (!options.sequence_weights) totals.metrics[kSamplingImportanceRatio] += weight.value * token_weight;
  if (token.mask * sequence.sample_mask > 0) totals.ratio.add(pg.ratio), totals.clamped.add(pg.clamped);
  return by_ratio;
}

CLIPPED_PG_BOTH void spread_gradient(const Sequence& sequence, size_t t, double by_sequence_ratio) {
  const double each = by_sequence_ratio / denominator(sequence.sums.tokens);
  sequence.grad[t] += static_cast<float>(each * sequence.token(t).mask);
}

// The KL penalty against the reference policy.
CLIPPED_PG_BOTH void add_kl(const Options& options, const Sequence& sequence, size_t t, Totals& totals) {
  const Token token = sequence.token(t);
  const double weight = sequence.loss_weight(options, token);
  const WeightedKl kl = weighted_kl(options, token);
  totals.kl += kl.value * weight;
  if (weight == 0 && !std::isnan(kl.by_weight)) return;
  // One after the other in fp32: where an unclamped KL is huge, both swallow the rest of the gradient and cancel.
  float& grad = (sequence.unfiltered.empty() ? sequence.grad : sequence.grad_unfiltered)[t];
  grad += static_cast<float>(options.kl_penalty * kl.by_weight * weight);
  grad -= static_cast<float>(options.kl_penalty * kl.by_estimate * weight);
}

// The metrics of the mismatch between the generator, the previous and the current policy.
CLIPPED_PG_BOTH void add_mismatch(const Options& options, const Sequence& sequence, size_t t, Totals& totals) {
  const Token token = sequence.token(t);
  const double p = token.previous, g = token.generation, weight = sequence.token_weight(token);
  const double mixture = std::log(0.5 * std::exp(p) + 0.5 * std::exp(g));
  const double js = exp_f32(p - mixture) - (p - mixture) - 1 + exp_f32(g - mixture) - (g - mixture) - 1;
  auto& sums = totals.metrics;
  sums[kTokenMultProbError] += exp_f32(std::abs(g - p) * token.mask * sequence.sample_mask) * weight;
  sums[kGenKlError] += kl_estimate(options.kl_type, p - g).value * weight;
  sums[kPolicyKlError] += kl_estimate(options.kl_type, g - p).value * weight;
  sums[kJsDivergenceError] += 0.5 * js * weight;
  sums[kApproxEntropy] -= exp_f32(token.current - g) * token.current * weight;
}

// The likelihood of a rewarded sequence's tokens, in the mean over all such tokens of the global batch (VAPO).
CLIPPED_PG_BOTH void add_positive(const Options& options, const Sequence& sequence, size_t t, Totals& totals) {
  if (!(sequence.reward > 0)) return;
  const Token token = sequence.token(t);
  const double weight = token.mask * sequence.sample_mask * sequence.per_positive_token;
  totals.positive_nll -= token.current * weight;
  sequence.grad[t] -= static_cast<float>(options.positive_nll_weight * weight);
}

// Everything but the policy gradient, then what the filter removed loses its gradient.
CLIPPED_PG_BOTH void add_others(const Options& options, const Sequence& sequence, size_t t, Totals& totals) {
  if (options.kl_penalty != 0) add_kl(options, sequence, t, totals);
  add_mismatch(options, sequence, t, totals);
  if (options.positive_nll_weight != 0) add_positive(options, sequence, t, totals);
  if (sequence.removed(t)) sequence.grad[t] = 0;
}

}  // namespace clipped_pg
