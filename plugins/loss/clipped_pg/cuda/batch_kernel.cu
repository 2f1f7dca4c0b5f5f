#include "../terms.hpp"
#include "batch_kernel.hpp"

namespace clipped_pg {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// The block's sum (or what `combine` makes of two values), the same for every thread, in a fixed order.
template <typename Combine>
__device__ double reduced(double value, Combine combine) {
  __shared__ double parts[kWarps];
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  __syncthreads();  // the last use is over
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < kWarps; ++i) value = combine(value, parts[i]);
  return value;
}

__device__ double sum_of(double value) {
  return reduced(value, [](double a, double b) { return a + b; });
}

__device__ Extrema range_of(const Extrema& of_thread) {
  Extrema range;
  range.min = reduced(of_thread.min, [](double a, double b) { return b < a ? b : a; });
  range.max = reduced(of_thread.max, [](double a, double b) { return b > a ? b : a; });
  return range;
}

__device__ Totals totals_of(const Totals& of_thread) {
  Totals totals;
  for (size_t i = 0; i < kMetricCount; ++i) totals.metrics[i] = sum_of(of_thread.metrics[i]);
  totals.ratio = range_of(of_thread.ratio), totals.clamped = range_of(of_thread.clamped);
  totals.actor = sum_of(of_thread.actor), totals.kl = sum_of(of_thread.kl);
  totals.positive_nll = sum_of(of_thread.positive_nll);
  return totals;
}

// A block a sequence in both.
__global__ void __launch_bounds__(kThreads) sum_tokens(Batch batch, TokenSums* sums) {
  const Sequence sequence = sequence_of(batch, blockIdx.x);
  TokenSums mine;
  for (size_t t = threadIdx.x; t < sequence.size(); t += kThreads) add_token(sequence, t, mine);
  const TokenSums all{sum_of(mine.tokens), sum_of(mine.log_ratio), sum_of(mine.drift)};
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
}

__global__ void __launch_bounds__(kThreads)
    add_terms(Options options, Batch batch, const TokenSums* sums, Totals* parts) {
  Sequence sequence = sequence_of(batch, blockIdx.x);
  sequence.sums = sequence_sums(sequence, sums[blockIdx.x]);
  Totals mine;
  double by_ratio = 0;
  for (size_t t = threadIdx.x; t < sequence.size(); t += kThreads) by_ratio += add_actor(options, sequence, t, mine);
  if (options.sequence_ratios) {
    by_ratio = sum_of(by_ratio);
    for (size_t t = threadIdx.x; t < sequence.size(); t += kThreads) spread_gradient(sequence, t, by_ratio);
  }
  for (size_t t = threadIdx.x; t < sequence.size(); t += kThreads) add_others(options, sequence, t, mine);
  Totals all = totals_of(mine);
  if (threadIdx.x > 0) return;
  add_sequence(options, sequence, all);
  parts[blockIdx.x] = all;
}

__global__ void conclude_batch(Options options, Batch batch, const Totals* parts, double* loss, double* metrics) {
  Totals totals;
  for (int64_t row = 0; row < batch.sequences; ++row) add(parts[row], totals);
  conclude(options, totals, batch.per_sequence, loss, metrics);
}

struct Scratch {
  Totals* parts;
  TokenSums* sums;
  int64_t* cu_seqlens;
};

Scratch scratch_in(void* memory, int64_t sequences) {
  auto* parts = static_cast<Totals*>(memory);
  auto* sums = reinterpret_cast<TokenSums*>(parts + sequences);
  return {parts, sums, reinterpret_cast<int64_t*>(sums + sequences)};
}

}  // namespace

size_t scratch_bytes(int64_t sequences) {
  const auto count = static_cast<size_t>(sequences);
  return count * (sizeof(Totals) + sizeof(TokenSums)) + (count + 1) * sizeof(int64_t);
}

cudaError_t compute_on_device(const Options& options, Batch batch, void* memory, double* loss, double* metrics,
                              cudaStream_t stream) {
  const Scratch scratch = scratch_in(memory, batch.sequences);
  const size_t bytes = static_cast<size_t>(batch.sequences + 1) * sizeof(int64_t);
  // Of pageable memory, this small, the driver has a copy when the call returns.
  cudaError_t error = cudaMemcpyAsync(scratch.cu_seqlens, batch.cu_seqlens, bytes, cudaMemcpyHostToDevice, stream);
  if (error != cudaSuccess) return error;
  batch.cu_seqlens = scratch.cu_seqlens;
  const auto blocks = static_cast<unsigned>(batch.sequences);
  if (blocks > 0) {
    sum_tokens<<<blocks, kThreads, 0, stream>>>(batch, scratch.sums);
    add_terms<<<blocks, kThreads, 0, stream>>>(options, batch, scratch.sums, scratch.parts);
  }
  conclude_batch<<<1, 1, 0, stream>>>(options, batch, scratch.parts, loss, metrics);
  return cudaGetLastError();
}

}  // namespace clipped_pg
