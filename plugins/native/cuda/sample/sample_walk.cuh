// Inverse of a row's cumulative distribution on the GPU: sums of its segments, the segment that a draw falls in, and
// the logit in it.
#pragma once
#include "plugins/native/cuda/sample/sample_row.cuh"

namespace hexad::native::cuda {

// Largest logit of each segment and, where `sums`, its sum of exponentials, from one reading. True if there is no nan.
__device__ inline bool summarize(const Row& row, float scale, bool sums, Segments& segments) {
  bool sound = true;
  for (int s = threadIdx.x / 32; s < row.segments(); s += kWarps) {
    float x[kSteps], largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < kSteps; ++j) x[j] = row.at(s, j);
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      sound = sound && x[j] == x[j];
      largest = fmaxf(largest, x[j]);
    }
    largest = warp_max(largest);
    float sum = 0;
    if (sums && fabsf(largest) < INFINITY) {
#pragma unroll
      for (int j = 0; j < kSteps; ++j) sum += __expf((x[j] - largest) * scale);
      sum = warp_sum(sum);
    }
    if (threadIdx.x % 32 == 0) segments.largest[s] = largest, segments.sum[s] = sum, segments.ties[s] = 0;
  }
  return __syncthreads_and(sound);
}

// The row's, of its segments'. By whole warps.
__device__ inline float largest_of(const Row& row, const Segments& segments) {
  float largest = -INFINITY;
  for (int s = threadIdx.x % 32; s < row.segments(); s += 32) largest = fmaxf(largest, segments.largest[s]);
  return warp_max(largest);
}

struct Place {
  int segment = -1;
  double before = 0;    // sum of what is kept in the segments before
  int ties_before = 0;  // in the segments before
};

// How many of `ties` ties are kept, when `before` come before them.
__device__ inline int kept_ties(int ties, int before, int dropped) {
  return max(0, min(ties, before + ties - dropped));
}

// The whole sum (target < 0), or the segment in which the running sum passes `target` (the last one with a sum, if
// rounding leaves none). By one warp.
__device__ inline Place walk(const Segments& segments, int count, float largest, float scale, const Kept& kept,
                             bool relative, float tie_weight, double target) {
  Place place;
  double running = 0;
  int ties_running = 0;
  for (int base = 0; base < count; base += 32) {
    const int s = base + int(threadIdx.x % 32);
    double sum = 0;
    int ties = 0;
    if (s < count) {
      ties = segments.ties[s];
      sum = double(segments.sum[s]);
      if (relative && sum > 0) sum *= double(expf((segments.largest[s] - largest) * scale));
    }
    const int ties_to = ties_running + warp_scan(ties);
    sum += double(tie_weight) * kept_ties(ties, ties_to - ties, kept.dropped_ties);
    const double to = running + warp_scan(sum);
    const unsigned passed = __ballot_sync(~0u, target >= 0 && sum > 0 && to > target);
    const unsigned any = __ballot_sync(~0u, sum > 0);
    const unsigned wanted = passed ? passed & -passed : any ? 1u << (31 - __clz(int(any))) : 0u;
    if (wanted) {
      const int lane = __ffs(int(wanted)) - 1;
      place = {base + lane, __shfl_sync(~0u, to - sum, lane), __shfl_sync(~0u, ties_to - ties, lane)};
    }
    running = __shfl_sync(~0u, to, 31);
    ties_running = __shfl_sync(~0u, ties_to, 31);
    if (passed) return place;
  }
  if (target < 0) place.before = running;
  return place;
}

// The logit of the segment at which the running sum passes `target`. By one warp.
__device__ inline int walk_segment(const Row& row, const Place& place, float largest, float scale, const Kept& kept,
                                   double target) {
  double running = place.before;
  int ties_running = place.ties_before, last = -1;
  for (int j = 0; j < kSteps; ++j) {
    const float x = row.at(place.segment, j);
    const bool tie = x == kept.least && x > -INFINITY;
    const int ties_to = ties_running + warp_scan(int(tie));
    const bool in = x > kept.least || (tie && ties_to > kept.dropped_ties);
    const float weight = in ? expf((x - largest) * scale) : 0.0f;
    const double to = running + warp_scan(double(weight));
    const int index = place.segment * kSegment + j * 32;
    const unsigned passed = __ballot_sync(~0u, weight > 0 && to > target), any = __ballot_sync(~0u, weight > 0);
    if (passed) return index + __ffs(int(passed)) - 1;
    if (any) last = index + 31 - __clz(int(any));
    running = __shfl_sync(~0u, to, 31);
    ties_running = __shfl_sync(~0u, ties_to, 31);
  }
  return last;
}

// The first logit of the row that equals `largest`. By one warp.
__device__ inline int first_largest(const Row& row, const Segments& segments, float largest) {
  int segment = 0;
  while (segments.largest[segment] != largest) ++segment;
  for (int j = 0; j < kSteps; ++j) {
    const unsigned found = __ballot_sync(~0u, row.at(segment, j) == largest);
    if (found) return segment * kSegment + j * 32 + __ffs(int(found)) - 1;
  }
  return -1;
}

}  // namespace hexad::native::cuda
