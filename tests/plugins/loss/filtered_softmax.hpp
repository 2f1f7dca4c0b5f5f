// Log-softmax of logits under top-k / top-p filters and its gradient, in plain double loops: the reference that chains
// a loss's gradient on to logits.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace loss_case {

struct Filter {
  int64_t top_k = 0;  // 0: off
  double top_p = 1;   // 1: off
};

// Probabilities of one row, 0 where filtered out. Top-k keeps all ties of the k-th; top-p keeps what lies above the
// lowest 1 - top_p of the mass, at least the most likely token.
inline std::vector<double> filtered_softmax(std::vector<double> logits, const Filter& filter) {
  const size_t size = logits.size();
  std::vector<size_t> ascending(size);
  std::iota(ascending.begin(), ascending.end(), size_t{0});
  std::stable_sort(ascending.begin(), ascending.end(), [&](size_t a, size_t b) { return logits[a] < logits[b]; });
  if (filter.top_k > 0 && static_cast<size_t>(filter.top_k) < size) {
    const double least = logits[ascending[size - static_cast<size_t>(filter.top_k)]];
    for (double& x : logits) x = x < least ? -INFINITY : x;
  }
  const auto softmax = [&] {
    const double top = *std::max_element(logits.begin(), logits.end());
    std::vector<double> p(size);
    double sum = 0;
    for (size_t v = 0; v < size; ++v) sum += p[v] = std::exp(logits[v] - top);
    for (double& x : p) x /= sum;
    return p;
  };
  std::vector<double> p = softmax();
  if (filter.top_p >= 1) return p;
  double mass = 0;
  for (size_t i = 0; i + 1 < size; ++i) {
    mass += p[ascending[i]];
    if (mass <= 1 - filter.top_p) logits[ascending[i]] = -INFINITY;
  }
  return softmax();
}

}  // namespace loss_case
