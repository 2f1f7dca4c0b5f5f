// Thresholds of min-p, top-k and top-p by radix selection: eight bits of the logits' order a round, so that no row is
// sorted. Sums are integers, and do not depend on the order of threads.
#pragma once
#include "plugins/native/cuda/sample/sample_row.cuh"

namespace hexad::native::cuda {

using Mass = unsigned long long;
constexpr double kMassUnits = 1099511627776.0;  // 2^40

struct Selection {
  Mass bins[256];
  uint32_t prefix;
  Mass before;  // what lies on the near side of the prefix
};

// Walks the logits >= `from` from one end of their order until the sum of their `weight` passes `limit`, and leaves in
// selection.prefix the key of the logit that passes it and in selection.before the sum of those that come before its
// equals. Ascending or descending. The total must be above `limit`. By all threads of the block.
template <bool kAscending, typename Weight>
__device__ void select(const Row& row, float from, Mass limit, const Weight& weight, Selection& selection) {
  if (threadIdx.x == 0) selection.prefix = 0, selection.before = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += kThreads) selection.bins[i] = 0;
    __syncthreads();
    const uint32_t prefix = selection.prefix;
    for (int i = threadIdx.x; i < row.vocab; i += kThreads) {
      const float x = row.logits[i];
      const uint32_t key = key_of(x);
      const bool inside = shift == 24 || key >> (shift + 8) == prefix >> (shift + 8);
      if (!inside || !(x >= from)) continue;
      const Mass mass = weight(x);
      if (mass > 0) atomicAdd(&selection.bins[key >> shift & 255u], mass);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      Mass before = selection.before;
      for (int i = 0; i < 256; ++i) {
        const int digit = kAscending ? i : 255 - i;
        const Mass here = selection.bins[digit];
        if (before + here > limit) {
          selection.prefix = prefix | uint32_t(digit) << shift;
          break;
        }
        before += here;
      }
      selection.before = before;
    }
    __syncthreads();
  }
}

// In vLLM's order: temperature, min-p, top-k, top-p. `largest` is the row's.
__device__ inline Kept filter(const Row& row, const DrawTask& task, float largest, float scale, Selection& selection) {
  Kept kept;
  if (task.min_p > 0) {
    const double bound = double(largest) + log(task.min_p) * task.temperature;
    kept.least = __double2float_ru(bound);
    kept.least = fminf(kept.least, largest);
  }
  if (task.top_k > 0 && task.top_k < row.vocab) {
    select<false>(
        row, -INFINITY, Mass(task.top_k) - 1, [](float) { return Mass(1); }, selection);
    kept.least = fmaxf(kept.least, of_key(selection.prefix));
    __syncthreads();
  }
  if (task.top_p < 1) {
    const auto weight = [=](float x) { return Mass(double(expf((x - largest) * scale)) * kMassUnits); };
    Mass total = 0;
    for (int i = threadIdx.x; i < row.vocab; i += kThreads) {
      if (row.logits[i] >= kept.least) total += weight(row.logits[i]);
    }
    __shared__ Mass whole;
    if (threadIdx.x == 0) whole = 0;
    __syncthreads();
    if ((total = warp_sum(total)) > 0 && threadIdx.x % 32 == 0) atomicAdd(&whole, total);
    __syncthreads();
    const Mass limit = min(Mass((1.0 - task.top_p) * double(whole)), whole - 1);
    select<true>(row, kept.least, limit, weight, selection);
    kept.least = of_key(selection.prefix);
    kept.dropped_ties = int((limit - selection.before) / max(weight(kept.least), Mass(1)));
    __syncthreads();
  }
  return kept;
}

}  // namespace hexad::native::cuda
