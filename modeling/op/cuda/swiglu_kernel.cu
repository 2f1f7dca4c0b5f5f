#include "modeling/op/cuda/swiglu_kernel.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWidth = 8;

struct Place {
  int64_t row, column;
  __device__ explicit Place(const SwigluCall& call) {
    const unsigned index = blockIdx.x * kBlock + threadIdx.x, pieces = static_cast<unsigned>(call.columns) / kWidth;
    row = index / pieces, column = index % pieces * kWidth;
  }
};

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

template <typename T>
__global__ void __launch_bounds__(kBlock) forward_kernel(SwigluCall call, T* y) {
  const Place at(call);
  if (at.row >= call.rows) return;
  float gate[kWidth], up[kWidth];
  load(static_cast<const T*>(call.gate) + at.row * call.gate_stride + at.column, gate);
  load(static_cast<const T*>(call.up) + at.row * call.up_stride + at.column, up);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) gate[i] = gate[i] * sigmoid(gate[i]) * up[i];
  store(y + at.row * call.columns + at.column, gate);
}

template <typename T>
__global__ void __launch_bounds__(kBlock) backward_kernel(SwigluCall call, const T* grad_y, T* grads) {
  const Place at(call);
  if (at.row >= call.rows) return;
  float gate[kWidth], up[kWidth], grad[kWidth];
  load(static_cast<const T*>(call.gate) + at.row * call.gate_stride + at.column, gate);
  load(static_cast<const T*>(call.up) + at.row * call.up_stride + at.column, up);
  load(grad_y + at.row * call.columns + at.column, grad);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float s = sigmoid(gate[i]), silu = gate[i] * s;
    gate[i] = grad[i] * up[i] * (s + silu * (1.0f - s));
    up[i] = grad[i] * silu;
  }
  T* to = grads + at.row * 2 * call.columns + at.column;
  store(to, gate);
  store(to + call.columns, up);
}

int blocks(const SwigluCall& call) { return blocks_for(call.rows * (call.columns / kWidth), kBlock); }

}  // namespace

void swiglu_forward(const SwigluCall& call, void* y, CUstream_st* stream) {
  if (call.rows == 0) return;
  with_element(call.type, [&](auto value) {
    forward_kernel<<<blocks(call), kBlock, 0, stream>>>(call, static_cast<decltype(value)*>(y));
  });
  check_launch("swiglu_forward");
}

void swiglu_backward(const SwigluCall& call, const void* grad_y, void* grads, CUstream_st* stream) {
  if (call.rows == 0) return;
  with_element(call.type, [&](auto value) {
    using T = decltype(value);
    backward_kernel<<<blocks(call), kBlock, 0, stream>>>(call, static_cast<const T*>(grad_y), static_cast<T*>(grads));
  });
  check_launch("swiglu_backward");
}

}  // namespace hexad::modeling::cuda
