// What the sampling kernel knows of its row, and scans over it. A row is cut into segments; a warp takes whole
// segments, in which the order of logits is that of lanes: logit j * 32 + lane.
#pragma once
#include <cmath>
#include <cstdint>

#include "plugins/native/cuda/sample/sample.hpp"

namespace hexad::native::cuda {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kSegment = 1024, kSteps = kSegment / 32, kMaxSegments = kMaxVocab / kSegment;

struct Row {
  const float* logits;
  int vocab;
  __device__ int segments() const { return (vocab + kSegment - 1) / kSegment; }
  __device__ float at(int segment, int step) const {
    const int i = segment * kSegment + step * 32 + int(threadIdx.x % 32);
    return i < vocab ? logits[i] : -INFINITY;
  }
};

// Which logits may be drawn: those above `least`, and of those equal to it all but the first `dropped_ties`.
struct Kept {
  float least = -INFINITY;
  int dropped_ties = 0;
};

// Of the segments, in shared memory.
struct Segments {
  float largest[kMaxSegments];
  float sum[kMaxSegments];  // of exp((logit - its segment's largest) * scale), later of what is kept
  int ties[kMaxSegments];   // logits equal to Kept::least
};

template <typename T>
__device__ T warp_sum(T x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

__device__ inline float warp_max(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

// Sum over the lanes up to this one.
template <typename T>
__device__ T warp_scan(T x) {
  for (int step = 1; step < 32; step *= 2) {
    const T before = __shfl_up_sync(~0u, x, step);
    if (int(threadIdx.x % 32) >= step) x += before;
  }
  return x;
}

// Unsigned numbers in the order of floats.
__device__ inline uint32_t key_of(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float of_key(uint32_t key) { return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key); }

}  // namespace hexad::native::cuda
