#include "modeling/op/cuda/adam_kernel.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWidth = 4;

struct Four {
  float param[kWidth], grad[kWidth], average[kWidth], square[kWidth];
};

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
__global__ void __launch_bounds__(kBlock) adam_kernel(AdamCall call) {
  const int64_t at = (int64_t(blockIdx.x) * kBlock + threadIdx.x) * kWidth;
  if (at >= call.count) return;
  if (at + kWidth > call.count) {  // the last elements, one by one
    for (int64_t i = at; i < call.count; ++i) {
      update(call, call.param[i], call.grad[i], call.average[i], call.square[i]);
      if (call.rounded) static_cast<T*>(call.rounded)[i] = from_float<T>(call.param[i]);
    }
    return;
  }
  Four x;
  load(call.param + at, x.param);
  load(call.grad + at, x.grad);
  load(call.average + at, x.average);
  load(call.square + at, x.square);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) update(call, x.param[i], x.grad[i], x.average[i], x.square[i]);
  store(call.param + at, x.param);
  store(call.average + at, x.average);
  store(call.square + at, x.square);
  if (call.rounded) store(static_cast<T*>(call.rounded) + at, x.param);
}

}  // namespace

void adam_step(const AdamCall& call, CUstream_st* stream) {
  if (call.count == 0) return;
  with_element(call.rounded_type, [&](auto value) {
    const int64_t threads = (call.count + kWidth - 1) / kWidth;
    adam_kernel<decltype(value)><<<blocks_for(threads, kBlock), kBlock, 0, stream>>>(call);
  });
  check_launch("adam_step");
}

}  // namespace hexad::modeling::cuda
