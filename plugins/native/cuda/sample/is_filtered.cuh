// Whether a draw is from a part of its row's distribution.
#pragma once
#include "plugins/native/cuda/sample/sample.hpp"

namespace hexad::native::cuda {

__device__ inline bool is_filtered(const DrawTask& task, int vocab) {
  const bool greedy = task.temperature == 0;
  return !greedy && (task.top_p < 1 || task.min_p > 0 || (task.top_k > 0 && task.top_k < vocab));
}

}  // namespace hexad::native::cuda
