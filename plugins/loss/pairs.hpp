// Bradley-Terry over pairs of rewards, as NeMo-RL's PreferenceLossFn: what dpo and preference share.
#pragma once
#include <cmath>
#include <span>

#include <hexad/plugin.hpp>

namespace pairs {

constexpr hexad_tensor_spec unit_ids() { return {"unit_id", HEXAD_DTYPE_I64, HEXAD_AXIS_SAMPLE, 0, 0}; }

// Throws unless every two rows are one unit: the chosen answer, then the rejected one.
inline void require_pairs(std::span<const int64_t> unit_id) {
  for (size_t row = 0; row < unit_id.size(); row += 2) {
    if (row + 1 < unit_id.size() && unit_id[row] == unit_id[row + 1]) continue;
    hexad::sdk::fail(HEXAD_INVALID_ARGUMENT,
                     "row %zu (unit_id %lld) is alone: rows come in pairs of one unit_id, the chosen answer first", row,
                     static_cast<long long>(unit_id[row]));
  }
}

// log sigmoid(x), without overflow.
inline double log_sigmoid(double x) { return std::fmin(x, 0.0) - std::log1p(std::exp(-std::fabs(x))); }
inline double sigmoid(double x) { return std::exp(log_sigmoid(x)); }

// Sums over pairs, to be divided by the pairs of the global batch.
struct Totals {
  double loss = 0, correct = 0, chosen = 0, rejected = 0, valid_rows = 0;
};

// Adds a pair of this weight (1, or 0 where it is outside the loss) with rewards `chosen` and `rejected`; returns
// d loss / d chosen, which is -d loss / d rejected.
inline double add_pair(Totals& totals, double chosen, double rejected, double beta, double weight) {
  if (weight == 0) return 0;
  const double margin = beta * (chosen - rejected);
  // An infinite reward must not pass for a good one.
  totals.loss -= (std::isfinite(margin) ? log_sigmoid(margin) : std::nan("")) * weight;
  totals.correct += (chosen > rejected) * weight;
  totals.chosen += chosen * weight;
  totals.rejected += rejected * weight;
  return -sigmoid(-margin) * beta * weight;
}

// 1 / the number of valid pairs of the global batch.
inline double per_pair(double global_valid_sequences) { return 1 / (global_valid_sequences / 2 + 1e-8); }

}  // namespace pairs
