#include "modeling/op/cuda/expert/expert_kernels.hpp"

#include <algorithm>

#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kWarp = 32, kWarps = 8, kBlock = kWarp * kWarps;
constexpr int kRun = 256;  // consecutive pairs that one warp counts, then places
constexpr unsigned kAll = 0xffffffffu;
static_assert(sizeof(int32_t) * (kWarps + 1) * kMostSortedExperts <= 48 * 1024);  // shared memory without asking

int64_t runs_of(int64_t pairs) { return (pairs + kRun - 1) / kRun; }

// Walks this warp's run, 32 pairs at a time, with the counters [num_experts] of the warp. body(pair, expert, before) is
// called with the counter of the expert as the pair finds it.
template <typename Body>
__device__ void walk_run(const ExpertSortCall& call, int64_t run, int32_t* counters, Body&& body) {
  const unsigned lane = threadIdx.x % kWarp;
  const int64_t begin = run * kRun, end = min(begin + kRun, call.pairs);
  for (int64_t first = begin; first < end; first += kWarp) {
    const int64_t pair = first + lane;
    const bool mine = pair < end;
    const int expert = mine ? static_cast<int>(call.experts[pair]) : -1;
    const unsigned same = __match_any_sync(kAll, expert);  // lanes with this expert
    const int rank = __popc(same & ((1u << lane) - 1));
    const int before = mine ? counters[expert] + rank : 0;
    __syncwarp();  // all have read
    if (mine && rank == 0) counters[expert] += __popc(same);
    __syncwarp();
    if (mine) body(pair, expert, before);
  }
}

// counts [runs, num_experts]: pairs of each expert in each run.
__global__ void __launch_bounds__(kBlock) count_kernel(ExpertSortCall call) {
  extern __shared__ int32_t shared[];
  const int64_t run = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (run * kRun >= call.pairs) return;  // whole warps alone, and no barrier of the block follows
  int32_t* const counters = shared + threadIdx.x / kWarp * call.num_experts;
  for (int e = threadIdx.x % kWarp; e < call.num_experts; e += kWarp) counters[e] = 0;
  __syncwarp();
  walk_run(call, run, counters, [](int64_t, int, int) {});
  for (int e = threadIdx.x % kWarp; e < call.num_experts; e += kWarp)
    call.counts[run * call.num_experts + e] = counters[e];
}

__device__ int inclusive_warp_sum(int value) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const int other = __shfl_up_sync(kAll, value, offset);
    if (lane >= offset) value += other;
  }
  return value;
}

// A warp an expert: counts become sums over earlier runs; the total goes behind them, counts[runs, expert].
__global__ void __launch_bounds__(kBlock) scan_runs_kernel(ExpertSortCall call, int64_t runs) {
  const int expert = blockIdx.x * kWarps + threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (expert >= call.num_experts) return;
  int total = 0;
  for (int64_t first = 0; first < runs; first += kWarp) {
    const int64_t run = first + lane;
    int32_t* const at = call.counts + run * call.num_experts + expert;
    const int count = run < runs ? *at : 0, sum = inclusive_warp_sum(count);
    if (run < runs) *at = total + sum - count;
    total += __shfl_sync(kAll, sum, kWarp - 1);
  }
  if (lane == 0) call.counts[runs * call.num_experts + expert] = total;
}

// begins [num_experts] in shared memory: rows of earlier experts. One warp writes them; the block reads them
// afterwards.
__device__ void scan_experts(const ExpertSortCall& call, const int32_t* totals, int32_t* begins) {
  if (threadIdx.x < kWarp) {
    int sum_before = 0;
    for (int first = 0; first < call.num_experts; first += kWarp) {
      const int expert = first + threadIdx.x, count = expert < call.num_experts ? totals[expert] : 0;
      const int sum = inclusive_warp_sum(count);
      if (expert < call.num_experts) {
        begins[expert] = sum_before + sum - count;
        if (blockIdx.x == 0) call.ends[expert] = sum_before + sum;
      }
      sum_before += __shfl_sync(kAll, sum, kWarp - 1);
    }
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kBlock) place_kernel(ExpertSortCall call, int64_t runs) {
  extern __shared__ int32_t shared[];
  int32_t* const begins = shared + kWarps * call.num_experts;
  scan_experts(call, call.counts + runs * call.num_experts, begins);
  const int64_t run = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (run >= runs) return;
  int32_t* const counters = shared + threadIdx.x / kWarp * call.num_experts;
  for (int e = threadIdx.x % kWarp; e < call.num_experts; e += kWarp)
    counters[e] = begins[e] + call.counts[run * call.num_experts + e];
  __syncwarp();
  walk_run(call, run, counters, [&](int64_t pair, int, int row) {
    call.rows[pair] = row;
    call.slots[row] = pair;
    call.tokens[row] = pair / call.topk;
  });
}

}  // namespace

int64_t expert_sort_scratch(int64_t pairs, int num_experts) { return (runs_of(pairs) + 1) * num_experts; }

void sort_by_expert(const ExpertSortCall& call, CUstream_st* stream) {
  const int64_t runs = runs_of(call.pairs);
  const int run_blocks = blocks_for(runs, kWarps), scan_blocks = blocks_for(call.num_experts, kWarps);
  const size_t counters = sizeof(int32_t) * kWarps * call.num_experts, begins = sizeof(int32_t) * call.num_experts;
  if (runs > 0) count_kernel<<<run_blocks, kBlock, counters, stream>>>(call);
  scan_runs_kernel<<<scan_blocks, kBlock, 0, stream>>>(call, runs);
  const int place_blocks = std::max(run_blocks, 1);  // the first writes the ends
  place_kernel<<<place_blocks, kBlock, counters + begins, stream>>>(call, runs);
  check_launch("sort_by_expert");
}

}  // namespace hexad::modeling::cuda
