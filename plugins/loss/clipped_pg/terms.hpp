// The terms of the loss, one function each: they add a sequence's share to the totals and its gradient to
// sequence.grad.
#pragma once
#include <span>

#include "metrics.hpp"
#include "options.hpp"
#include "sequence.hpp"

namespace clipped_pg {

// Sums over a batch; the metrics are in the order of Metric.
struct Totals {
  std::array<double, kMetricCount> metrics{};
  Extrema ratio, clamped;
  double actor = 0;
  double kl = 0;            // before the penalty factor
  double positive_nll = 0;  // before its weight
};

// The policy gradient with its ratio and importance weight, and the metrics of both. Starts the gradient.
void add_actor(const Options& options, const Sequence& sequence, Totals& totals);

// The KL penalty against the reference policy.
void add_kl(const Options& options, const Sequence& sequence, Totals& totals);

// The metrics of the mismatch between the generator, the previous and the current policy.
void add_mismatch(const Options& options, const Sequence& sequence, Totals& totals);

// The likelihood of tokens of rewarded sequences, normalised by the number of such tokens among `group`.
void add_positive_nll(const Options& options, std::span<const Sequence> group, Totals& totals);

}  // namespace clipped_pg
