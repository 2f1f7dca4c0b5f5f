// Bytes that a rank sends in a training step, collective by collective, counted as CountingGroup counts them.
#pragma once
#include "benchmarks/layout_bytes/sent_activations.hpp"
#include "benchmarks/layout_bytes/sent_parameters.hpp"

namespace layout_bytes {

inline std::vector<Term> sent_formula(const Layout& layout, const Form& form, int64_t layers, int rank) {
  Sender sender(layout, form, layers, rank);
  add_parameters(sender);
  add_activations(sender);
  return std::move(sender.terms);
}

}  // namespace layout_bytes
