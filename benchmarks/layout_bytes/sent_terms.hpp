// What the formulas of sent bytes are written in.
// H hidden size; E and G bytes of a parameter (and activation) and of a gradient; t a micro-batch's tokens on a
// context-parallel rank; M micro-batches, L this stage's layers, P this rank's parameters, n ranks of the group.
#pragma once
#include "benchmarks/layout_bytes/cases.hpp"

namespace layout_bytes {

struct Term {
  std::string collective;  // CountingGroup's key: group and collective
  double bytes = 0;
  std::string what;
};

// One rank's part in a step.
struct Sender {
  const Layout& layout;
  const Form& form;
  int rank;
  Parameters parameters;
  double L, M = kMicroBatches, H = kHidden;
  bool first, last;  // stage
  std::vector<Term> terms = {};

  Sender(const Layout& layout_, const Form& form_, int64_t layers, int rank_)
      : layout(layout_),
        form(form_),
        rank(rank_),
        parameters(parameters_of(layout_, layers, rank_)),
        L(static_cast<double>(layers / layout_.pp)),
        first(layout_.stage(rank_) == 0),
        last(layout_.stage(rank_) == layout_.pp - 1) {}

  double E() const { return static_cast<double>(form.parameter()); }
  double G() const { return static_cast<double>(form.gradient()); }
  double t() const { return static_cast<double>(layout.row()); }
  // Of a collective over n ranks, what goes to others.
  static double others(int64_t n) { return static_cast<double>(n - 1) / static_cast<double>(n); }
  // Gradients are reduced after every micro-batch where they are shared, else once.
  double reductions() const { return form.level() > 1 ? M : 1; }

  void add(std::string collective, double bytes, std::string what) {
    if (bytes > 0) terms.push_back({std::move(collective), bytes, std::move(what)});
  }
};

}  // namespace layout_bytes
