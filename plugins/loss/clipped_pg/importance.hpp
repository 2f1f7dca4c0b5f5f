// Importance-sampling correction exp(previous - generation), truncated as the options say.
#pragma once
#include "numbers.hpp"
#include "options.hpp"
#include "sequence.hpp"

namespace clipped_pg {

struct Weight {
  double value;
  bool outside;  // of the truncation's bounds
};

// Truncates a raw weight; seq-mask-tis is decided by the whole sequence.
CLIPPED_PG_BOTH Weight truncate_weight(const Options& options, double raw, const SequenceSums& sums) {
  const double low = options.truncation_min, high = options.truncation_max;
  switch (options.truncation) {
    case Truncation::none: return {raw, false};
    case Truncation::tis: return {clamp(raw, low, high), raw < low || raw > high};
    case Truncation::icepop: {
      const bool outside = raw < low || raw > high;
      return {outside ? 0 : raw, outside};
    }
    case Truncation::seq_mask_tis: break;
  }
  const double mean = exp_f32(sums.mean_log_drift);
  const bool outside = !(mean >= low && mean <= high);
  return {outside ? 0 : raw, outside};
}

// Weights that overflow become 0.
CLIPPED_PG_BOTH Weight importance_weight(const Options& options, const Token& token, const SequenceSums& sums) {
  const double raw =
      options.sequence_weights ? sums.weight : finite_or_zero(exp_f32(token.previous - token.generation));
  return truncate_weight(options, raw, sums);
}

}  // namespace clipped_pg
