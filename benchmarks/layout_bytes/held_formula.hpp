// Bytes that a rank holds. Source: Megatron-Core, docs/user-guide/features/dist_optimizer.md (non-distributed, optim);
// the other forms follow from what each shares.
#pragma once
#include <fmt/core.h>

#include "benchmarks/layout_bytes/cases.hpp"

namespace layout_bytes {

// Of one parameter: `whole` on every rank, and `shared` over the d ranks that own it together.
struct HeldFormula {
  int64_t whole = 0, shared = 0;

  double at(int64_t d) const {
    return static_cast<double>(whole) + static_cast<double>(shared) / static_cast<double>(d);
  }
  std::string text() const {
    if (shared == 0) return fmt::format("{}", whole);
    return whole == 0 ? fmt::format("{}/d", shared) : fmt::format("{} + {}/d", whole, shared);
  }
};

// Optimizer: an fp32 master (none of fp32 parameters; of bf16 ones under the precision-aware optimizer the 2 bytes that
// they lack), two moments (fp32; there bf16), and an fp32 copy of 16-bit gradients (there none).
inline HeldFormula held_formula(const Form& form) {
  const int64_t optimizer =
      form.precision_aware ? 2 + 2 * 2 : (form.parameter() < 4 ? 4 : 0) + 2 * 4 + (form.gradient() < 4 ? 4 : 0);
  const int64_t parts[] = {optimizer, form.gradient(), form.parameter()};
  HeldFormula formula;
  for (int part = 0; part < 3; ++part) (part < form.level() ? formula.shared : formula.whole) += parts[part];
  return formula;
}

// With 16-bit gradients and fp32 ones for the optimizer, both exist while one is made from the other alone: those forms
// are compared at the highest point of a step. The others hold everything from the backward pass until the update.
inline bool held_at_peak(const Form& form) { return form.gradient() < 4 && !form.precision_aware; }

// A rank's bytes: d is DP x CP (of one instance of the optimizer) for dense parameters, EDP for experts.
inline double held_bytes(const Layout& layout, const Form& form, const Parameters& parameters) {
  const HeldFormula formula = held_formula(form);
  return static_cast<double>(parameters.dense) * formula.at(layout.dense_owners()) +
         static_cast<double>(parameters.expert) * formula.at(layout.edp());
}

// optim_grads_params: parameters of two layers are put together at once, the one that runs and the next.
inline double transient_bytes(const Form& form, const Parameters& parameters) {
  return 2.0 * static_cast<double>(form.parameter() * parameters.layer);
}

}  // namespace layout_bytes
