#include "modeling/op/cuda/adam_kernel.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;

__device__ inline void update(const AdamCall& call, float& param, float grad, float& average, float& square) {
  grad *= call.maximize ? -call.grad_scale : call.grad_scale;
  if (call.decoupled) {
    param -= call.lr * call.decay * param;
  } else {
    grad += call.decay * param;
  }
  average = call.beta1 * average + call.rest1 * grad;
  square = call.beta2 * square + call.rest2 * grad * grad;
  const float denominator = sqrtf(square) / call.correction2_root + call.eps;
  param -= call.lr / call.correction1 * average / denominator;
}

template <typename T>
__device__ void update_one(const AdamCall& call, int64_t i) {
  update(call, call.param[i], call.grad[i], call.average[i], call.square[i]);
  if (call.rounded) static_cast<T*>(call.rounded)[i] = from_float<T>(call.param[i]);
}

// A thread takes kWidth elements: four in words of 16 bytes, or one.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kBlock) adam_kernel(AdamCall call) {
  const int64_t at = (int64_t(blockIdx.x) * kBlock + threadIdx.x) * kWidth;
  if (kWidth == 1 || at + kWidth > call.count) {
    for (int64_t i = at; i < min(at + kWidth, call.count); ++i) update_one<T>(call, i);
    return;
  }
  float param[kWidth], grad[kWidth], average[kWidth], square[kWidth];
  load(call.param + at, param);
  load(call.grad + at, grad);
  load(call.average + at, average);
  load(call.square + at, square);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) update(call, param[i], grad[i], average[i], square[i]);
  store(call.param + at, param);
  store(call.average + at, average);
  store(call.square + at, square);
  if (call.rounded) store(static_cast<T*>(call.rounded) + at, param);
}

template <typename T, int kWidth>
void launch(const AdamCall& call, CUstream_st* stream) {
  const int64_t threads = (call.count + kWidth - 1) / kWidth;
  adam_kernel<T, kWidth><<<blocks_for(threads, kBlock), kBlock, 0, stream>>>(call);
}

}  // namespace

void adam_step(const AdamCall& call, CUstream_st* stream) {
  if (call.count == 0) return;
  with_element(call.rounded_type, [&](auto value) {
    call.aligned ? launch<decltype(value), 4>(call, stream) : launch<decltype(value), 1>(call, stream);
  });
  check_launch("adam_step");
}

}  // namespace hexad::modeling::cuda
