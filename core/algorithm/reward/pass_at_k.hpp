// pass@k: how likely one of k samples is right, from n samples of which c were (Chen et al. 2021, arXiv 2107.03374).
#pragma once
#include <cstdint>

namespace hexad::algorithm {

// 1 - C(n - c, k) / C(n, k), without bias; 1 <= k <= n.
inline double pass_at_k(int64_t n, int64_t c, int64_t k) {
  double none = 1;  // of k draws without replacement
  for (int64_t i = 0; i < k; ++i) none *= static_cast<double>(n - c - i) / static_cast<double>(n - i);
  return n - c < k ? 1 : 1 - none;
}

}  // namespace hexad::algorithm
