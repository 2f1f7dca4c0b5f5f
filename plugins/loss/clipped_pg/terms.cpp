#include "terms.hpp"

#include "importance.hpp"
#include "kl.hpp"
#include "objective.hpp"

namespace clipped_pg {

void add_actor(const Options& options, const Sequence& sequence, Totals& totals) {
  double by_sequence_ratio = 0;
  for (size_t t = 0; t < sequence.size(); ++t) {
    const Token token = sequence.token(t);
    const double token_weight = sequence.token_weight(token);
    const double loss_weight = sequence.loss_weight(options, token);
    const double ratio = options.sequence_ratios ? sequence.sums.ratio : exp_f32(token.current - token.previous);
    const Objective pg = objective(options, ratio, token.current, token.advantage);
    const Weight weight = importance_weight(options, token, sequence.sums);
    const double applied = options.importance_correction ? weight.value : 1;

    totals.actor += applied * pg.value * loss_weight;
    double grad = 0;
    if (loss_weight != 0) {
      grad = applied * pg.by_current * loss_weight;
      const double by_ratio = applied * pg.by_ratio * ratio * loss_weight;
      (options.sequence_ratios ? by_sequence_ratio : grad) += by_ratio;
    }
    sequence.grad[t] = static_cast<float>(grad);

    totals.metrics[kProbsRatio] += pg.ratio * token_weight;
    totals.metrics[kProbsRatioClamped] += pg.clamped * token_weight;
    if (options.truncation != Truncation::seq_mask_tis) totals.metrics[kIsOobRatio] += weight.outside * token_weight;
    if (!options.sequence_ratios) totals.metrics[kSamplingImportanceRatio] += weight.value * token_weight;
    if (token.mask * sequence.sample_mask > 0) totals.ratio.add(pg.ratio), totals.clamped.add(pg.clamped);
  }
  if (!options.sequence_ratios) return;
  const double each = by_sequence_ratio / denominator(sequence.sums.tokens);
  for (size_t t = 0; t < sequence.size(); ++t) sequence.grad[t] += static_cast<float>(each * sequence.token(t).mask);
}

void add_kl(const Options& options, const Sequence& sequence, Totals& totals) {
  for (size_t t = 0; t < sequence.size(); ++t) {
    const Token token = sequence.token(t);
    const double weight = sequence.loss_weight(options, token);
    const WeightedKl kl = weighted_kl(options, token.unfiltered, token.reference, token.generation);
    totals.kl += kl.value * weight;
    if (weight == 0 && !std::isnan(kl.by_weight)) continue;
    // One after the other in fp32: where an unclamped KL is huge, both swallow the rest of the gradient and cancel.
    float& grad = (sequence.unfiltered.empty() ? sequence.grad : sequence.grad_unfiltered)[t];
    grad += static_cast<float>(options.kl_penalty * kl.by_weight * weight);
    grad -= static_cast<float>(options.kl_penalty * kl.by_estimate * weight);
  }
}

void add_mismatch(const Options& options, const Sequence& sequence, Totals& totals) {
  auto& sums = totals.metrics;
  for (size_t t = 0; t < sequence.size(); ++t) {
    const Token token = sequence.token(t);
    const double p = token.previous, g = token.generation, weight = sequence.token_weight(token);
    sums[kTokenMultProbError] += exp_f32(std::abs(g - p) * token.mask * sequence.sample_mask) * weight;
    sums[kGenKlError] += kl_estimate(options.kl_type, p - g).value * weight;
    sums[kPolicyKlError] += kl_estimate(options.kl_type, g - p).value * weight;
    const double mixture = std::log(0.5 * std::exp(p) + 0.5 * std::exp(g));
    const auto to_mixture = [&](double x) { return exp_f32(x - mixture) - (x - mixture) - 1; };
    sums[kJsDivergenceError] += 0.5 * (to_mixture(p) + to_mixture(g)) * weight;
    sums[kApproxEntropy] -= exp_f32(token.current - g) * token.current * weight;
  }
}

void add_positive_nll(const Options& options, std::span<const Sequence> group, Totals& totals) {
  double sum = 0, count = 0;
  for (const Sequence& sequence : group) {
    for (size_t t = 0; sequence.reward > 0 && t < sequence.size(); ++t) {
      const Token token = sequence.token(t);
      sum -= token.current * token.mask * sequence.sample_mask;
      count += token.mask * sequence.sample_mask;
    }
  }
  totals.positive_nll += sum / denominator(count);
  const double scale = options.positive_nll_weight / denominator(count);
  for (const Sequence& sequence : group) {
    for (size_t t = 0; sequence.reward > 0 && t < sequence.size(); ++t) {
      sequence.grad[t] -= static_cast<float>(scale * sequence.token(t).mask * sequence.sample_mask);
    }
  }
}

}  // namespace clipped_pg
