// The policy-gradient objective of one token as a function of its ratio.
#pragma once
#include "kl.hpp"
#include "numbers.hpp"
#include "options.hpp"

namespace clipped_pg {

struct Objective {
  double value;
  double by_ratio;    // derivative by the ratio
  double by_current;  // derivative by the current log-prob itself (REINFORCE, CISPO)
  double ratio;       // as reported
  double clamped;     // as reported
};

// Adds half of each side at ties, as automatic differentiation of max and min does.
CLIPPED_PG_BOTH ValueGrad greater(ValueGrad a, ValueGrad b) {
  if (a.value == b.value) return {a.value, (a.grad + b.grad) / 2};
  return a.value > b.value ? a : b;
}

CLIPPED_PG_BOTH Objective objective(const Options& options, double ratio, double current, double advantage) {
  if (options.reinforce) {
    Objective result{-advantage * current, 0, -advantage, current, current};
    if (options.dual_clip && advantage < 0) {
      const ValueGrad bound{advantage * *options.dual_clip, 0};
      const ValueGrad least = greater({-result.value, advantage}, bound);
      result.value = -least.value;
      result.by_current = -least.grad;
    }
    return result;
  }
  const double clamped = clamp(ratio, 1 - options.clip_min, 1 + options.clip_max);
  if (options.cispo) return {-advantage * clamped * current, 0, -advantage * clamped, ratio, clamped};

  const double clamped_grad = clamped == ratio ? -advantage : 0;
  ValueGrad loss = greater({-advantage * ratio, -advantage}, {-advantage * clamped, clamped_grad});
  if (options.dual_clip && advantage < 0) {
    const ValueGrad least = greater({-loss.value, -loss.grad}, {advantage * *options.dual_clip, 0});
    loss = {-least.value, -least.grad};
  }
  return {loss.value, loss.grad, 0, ratio, clamped};
}

}  // namespace clipped_pg
