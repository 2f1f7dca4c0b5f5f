#include "plugins/native/sample/exp_row.hpp"

#include <algorithm>
#include <numeric>

#include "plugins/native/sample/row_kernel.hpp"

namespace hexad::native {

ExpRow::ExpRow(const float* row, int64_t count, float top, float inverse_temperature)
    : logits(row), size(count), largest(top), scale(inverse_temperature), sums((count + kSpan - 1) / kSpan) {
  exp_sums(logits, size, largest, scale, sums.data());
  total = std::accumulate(sums.begin(), sums.end(), 0.0);
}

// First the span, then the place in it.
int32_t ExpRow::at(double rest) const {
  size_t span = 0;
  while (span + 1 < sums.size() && rest >= sums[span]) rest -= sums[span++];
  const int64_t begin = static_cast<int64_t>(span) * kSpan, count = std::min(kSpan, size - begin);
  float weights[kSpan];
  exp_terms(logits + begin, count, largest, scale, weights);
  int64_t chosen = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (weights[i] <= 0) continue;
    chosen = i;
    rest -= weights[i];
    if (rest < 0) break;
  }
  if (chosen < 0) return static_cast<int32_t>(std::max_element(logits, logits + size) - logits);
  return static_cast<int32_t>(begin + chosen);
}

}  // namespace hexad::native
