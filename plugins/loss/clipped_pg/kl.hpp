// KL estimators on log-ratios d = reference - current, and the weighted KL penalty of one token with its gradient.
#pragma once
#include <algorithm>
#include <cmath>

#include "numbers.hpp"
#include "options.hpp"
#include "sequence.hpp"

namespace clipped_pg {

struct ValueGrad {
  double value;
  double grad;
};

// A weighted KL and its derivative by the current log-prob in its two parts: by_weight - by_estimate.
struct WeightedKl {
  double value;
  double by_weight;
  double by_estimate;
};

// k1 = -d, k2 = d^2 / 2, k3 = e^d - 1 - d, and d k / d d.
CLIPPED_PG_BOTH ValueGrad kl_estimate(KlType type, double d) {
  switch (type) {
    case KlType::k1: return {-d, -1};
    case KlType::k2: return {d * d / 2, d};
    case KlType::k3: break;
  }
  // Next to a large e^d fp32 loses 1 and d, so that value and derivative coincide there. The gradient of the penalty
  // takes their difference, and takes it as fp32 does.
  const double e = d > 16 ? to_f32(exp_f32(d)) : std::exp(d);
  return {to_f32(e - 1 - d), to_f32(e - 1)};
}

// clamp(w * k(clamp(reference - current)), +-output) and its gradient by `current`, which is token.unfiltered. The
// weight w is exp(current - generation), or exp(current - sg(current)) = 1 with the same gradient w; where the input
// clamp acts, the whole token is constant.
CLIPPED_PG_BOTH WeightedKl weighted_kl(const Options& options, const Token& token) {
  const double current = token.unfiltered;
  double d = token.reference - current;
  bool constant = false;
  if (options.kl_input_clamp) {
    const double clamped = clamp(d, -*options.kl_input_clamp, *options.kl_input_clamp);
    constant = clamped != d;
    d = clamped;
  }
  const ValueGrad k = kl_estimate(options.kl_type, d);
  const double raw = exp_f32(options.on_policy_kl ? current - token.generation : token.moved);
  const double weight = finite_or_zero(raw);
  WeightedKl kl{weight * k.value, weight * k.value, weight * k.grad};
  if (options.kl_output_clamp) {
    const double clamped = clamp(kl.value, -*options.kl_output_clamp, *options.kl_output_clamp);
    constant |= clamped != kl.value;
    kl.value = clamped;
  }
  if (constant) kl.by_weight = kl.by_estimate = 0;
  if (!std::isfinite(raw)) kl.by_weight = NAN;
  return kl;
}

}  // namespace clipped_pg
