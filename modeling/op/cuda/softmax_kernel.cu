#include <cmath>

#include "modeling/op/cuda/softmax_kernel.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 512;
constexpr int kWidth = 4;

// Of some logits: the largest, sum exp(x - largest) and sum x exp(x - largest).
struct Sums {
  float largest = -INFINITY, exponentials = 0, weighted = 0;

  __device__ void add(const float* x, int count) {
    float top = largest;
    for (int i = 0; i < count; ++i) top = fmaxf(top, x[i]);
    if (top == -INFINITY) return;
    rescale(top);
    for (int i = 0; i < count; ++i) {
      const float e = __expf(x[i] - top);
      exponentials += e;
      weighted += e > 0 ? x[i] * e : 0;
    }
  }
  __device__ void rescale(float top) {
    const float factor = largest == -INFINITY ? 0 : __expf(largest - top);
    exponentials *= factor, weighted *= factor, largest = top;
  }
  __device__ void join(Sums other) {
    const float top = fmaxf(largest, other.largest);
    if (top == -INFINITY) return;
    rescale(top);
    other.rescale(top);
    exponentials += other.exponentials, weighted += other.weighted;
  }
};

__device__ Sums over_block(Sums sums) {
  __shared__ Sums warps[kBlock / 32];
  const auto over_lanes = [](Sums& mine, int width) {
    for (int offset = width / 2; offset > 0; offset /= 2) {
      Sums other;
      other.largest = __shfl_xor_sync(0xffffffffu, mine.largest, offset);
      other.exponentials = __shfl_xor_sync(0xffffffffu, mine.exponentials, offset);
      other.weighted = __shfl_xor_sync(0xffffffffu, mine.weighted, offset);
      mine.join(other);
    }
  };
  over_lanes(sums, 32);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sums;
  __syncthreads();
  if (threadIdx.x < 32) {
    sums = threadIdx.x < kBlock / 32 ? warps[threadIdx.x] : Sums();
    over_lanes(sums, kBlock / 32);
  }
  return sums;  // of the first warp: the block's
}

// kAligned: rows begin on 16 bytes, so that words of four can be read.
template <bool kAligned>
__global__ void __launch_bounds__(kBlock) statistics_kernel(SoftmaxStatisticsCall call) {
  const int64_t row = blockIdx.x;
  const float* logits = call.logits + (call.source ? call.source[row] : row) * call.columns;
  const float scale = call.scale ? call.scale[row] : 1.0f;
  __half* kept = call.kept ? static_cast<__half*>(call.kept) + row * call.columns : nullptr;
  Sums sums;
  constexpr int kStep = kAligned ? kWidth : 1;
  for (int64_t column = int64_t(threadIdx.x) * kStep; column < call.columns; column += kBlock * kStep) {
    float x[kStep];
    load(logits + column, x);
    if (call.scale) {
#pragma unroll
      for (int i = 0; i < kStep; ++i) x[i] = __fmul_rn(x[i], scale);
    }
    sums.add(x, kStep);
    if (kept) {
#pragma unroll
      for (int i = 0; i < kStep; ++i) x[i] = x[i] == -INFINITY ? x[i] : fminf(fmaxf(x[i], -65504.0f), 65504.0f);
      store(kept + column, x);
    }
  }
  sums = over_block(sums);
  if (threadIdx.x != 0) return;
  const float log_sum = sums.largest + logf(sums.exponentials);
  call.log_sum[row] = log_sum;
  call.entropy[row] = log_sum - sums.weighted / sums.exponentials;
  if (!call.targets) return;
  const int64_t target = call.targets[row];
  call.target_logits[row] = target >= 0 && target < call.columns ? __fmul_rn(logits[target], scale) : 0;
}

template <typename L, typename T, bool kAligned>
__global__ void __launch_bounds__(kBlock) gradient_kernel(SoftmaxGradientCall call) {
  const int64_t row = blockIdx.x;
  const L* logits = static_cast<const L*>(call.logits) + row * call.columns;
  T* grads = static_cast<T*>(call.grads) + row * call.columns;
  const float log_sum = call.log_sum[row], entropy = call.entropy[row];
  const float by_logprob = call.factor * call.grad_logprob[row], by_entropy = call.factor * call.grad_entropy[row];
  const int64_t target = call.targets[row];
  constexpr int kStep = kAligned ? kWidth : 1;
  for (int64_t column = int64_t(threadIdx.x) * kStep; column < call.columns; column += kBlock * kStep) {
    float x[kStep];
    load(logits + column, x);
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
      const float logprob = x[i] - log_sum, p = __expf(logprob);
      const float inner = by_entropy != 0 && p > 0 ? by_entropy * (logprob + entropy) : 0;
      x[i] = (column + i == target ? by_logprob : 0) - p * (by_logprob + inner);
    }
    store(grads + column, x);
  }
}

}  // namespace

void softmax_statistics(const SoftmaxStatisticsCall& call, CUstream_st* stream) {
  if (call.rows == 0) return;
  const auto kernel = call.columns % kWidth == 0 ? statistics_kernel<true> : statistics_kernel<false>;
  kernel<<<static_cast<unsigned>(call.rows), kBlock, 0, stream>>>(call);
  check_launch("softmax_statistics");
}

void softmax_gradient(const SoftmaxGradientCall& call, CUstream_st* stream) {
  if (call.rows == 0) return;
  const auto launch = [&](auto logit, auto value) {
    using L = decltype(logit);
    using T = decltype(value);
    const auto kernel = call.columns % kWidth == 0 ? gradient_kernel<L, T, true> : gradient_kernel<L, T, false>;
    kernel<<<static_cast<unsigned>(call.rows), kBlock, 0, stream>>>(call);
  };
  with_element(call.type,
               [&](auto value) { call.logit_type == Element::f32 ? launch(float{}, value) : launch(__half{}, value); });
  check_launch("softmax_gradient");
}

}  // namespace hexad::modeling::cuda
