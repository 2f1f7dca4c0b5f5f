// What a batch adds up to, and the loss and metrics that come of it.
#pragma once
#include <array>
#include <cstddef>
#include <limits>

#include "importance.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "sequence.hpp"

namespace clipped_pg {

enum Metric : size_t {
  kLoss,
  kKlPenalty,
  kTokenMultProbError,
  kGenKlError,
  kPolicyKlError,
  kJsDivergenceError,
  kSamplingImportanceRatio,
  kIsOobRatio,
  kApproxEntropy,
  kProbsRatio,
  kProbsRatioClamped,
  kProbsRatioMin,
  kProbsRatioMax,
  kProbsRatioClampedMin,
  kProbsRatioClampedMax,
  kPositiveNllLoss,
  kNumValidSamples,
  kMetricCount
};

// Range of a value over the tokens that count.
struct Extrema {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  CLIPPED_PG_BOTH void add(double value) {
    min = value < min ? value : min;
    max = value > max ? value : max;
  }
  CLIPPED_PG_BOTH void add(const Extrema& part) {  // which may be of no token
    min = part.min < min ? part.min : min;
    max = part.max > max ? part.max : max;
  }
};

// Sums over a batch; the metrics are in the order of Metric.
struct Totals {
  std::array<double, kMetricCount> metrics{};
  Extrema ratio, clamped;
  double actor = 0;
  double kl = 0;                  // before the penalty factor
  double positive_nll = 0;        // before its weight
  double valid = 0, weights = 0;  // valid sequences, and their importance weights
};

CLIPPED_PG_BOTH void add(const Totals& part, Totals& totals) {
  for (size_t i = 0; i < kMetricCount; ++i) totals.metrics[i] += part.metrics[i];
  totals.ratio.add(part.ratio), totals.clamped.add(part.clamped);
  totals.actor += part.actor, totals.kl += part.kl, totals.positive_nll += part.positive_nll;
  totals.valid += part.valid, totals.weights += part.weights;
}

// What counts once a sequence.
CLIPPED_PG_BOTH void add_sequence(const Options& options, const Sequence& sequence, Totals& totals) {
  const Weight weight = truncate_weight(options, sequence.sums.weight, sequence.sums);
  totals.valid += sequence.sample_mask;
  totals.weights += weight.value * sequence.sample_mask;
  if (options.truncation == Truncation::seq_mask_tis)
    totals.metrics[kIsOobRatio] += weight.outside * sequence.sample_mask * sequence.per_sequence;
}

// The loss [1] and the metrics [kMetricCount][value, weight] of a whole batch. `per_sequence`: 1 / global sequence
// count.
CLIPPED_PG_BOTH void conclude(const Options& options, Totals totals, double per_sequence, double* loss,
                              double* metrics) {
  totals.metrics[kNumValidSamples] = totals.valid;
  // Each row's weight under its own mask; in a padded micro-batch of NeMo-RL's every weight meets every mask.
  if (options.sequence_weights) totals.metrics[kSamplingImportanceRatio] = totals.weights * per_sequence;
  *loss = totals.actor + options.kl_penalty * totals.kl + options.positive_nll_weight * totals.positive_nll;
  totals.metrics[kLoss] = *loss;
  totals.metrics[kKlPenalty] = totals.kl;
  totals.metrics[kPositiveNllLoss] = totals.positive_nll;
  const double ranges[] = {totals.ratio.min, totals.ratio.max, totals.clamped.min, totals.clamped.max};
  const bool any = totals.ratio.min <= totals.ratio.max;
  for (size_t i = 0; i < kMetricCount; ++i) {
    const bool range = i >= kProbsRatioMin && i <= kProbsRatioClampedMax;
    metrics[2 * i] = range ? ranges[i - kProbsRatioMin] : totals.metrics[i];
    metrics[2 * i + 1] = range && !any ? 0 : 1;
  }
}

}  // namespace clipped_pg
