#include "modeling/op/cuda/expert/expert_kernels.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWidth = 8;

// A thread's eight columns of one token.
struct Place {
  int64_t token;
  int column;
  __device__ explicit Place(const ExpertRowsCall& call) {
    const unsigned index = blockIdx.x * kBlock + threadIdx.x, pieces = static_cast<unsigned>(call.dim) / kWidth;
    token = index / pieces, column = static_cast<int>(index % pieces) * kWidth;
  }
};

template <typename T>
__global__ void __launch_bounds__(kBlock) spread_kernel(ExpertRowsCall call, const T* from, T* to) {
  const Place at(call);
  if (at.token >= call.tokens) return;
  const Pack<T, kWidth> values = *reinterpret_cast<const Pack<T, kWidth>*>(from + at.token * call.dim + at.column);
  for (int j = 0; j < call.topk; ++j) {
    const int64_t row = call.rows[at.token * call.topk + j];
    *reinterpret_cast<Pack<T, kWidth>*>(to + row * call.dim + at.column) = values;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlock) sum_kernel(ExpertRowsCall call, const T* from, T* to) {
  const Place at(call);
  if (at.token >= call.tokens) return;
  float sum[kWidth] = {};
#pragma unroll 4
  for (int j = 0; j < call.topk; ++j) {
    const int64_t row = call.rows[at.token * call.topk + j];
    float values[kWidth];
    load(from + row * call.dim + at.column, values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] += values[i];
  }
  store(to + at.token * call.dim + at.column, sum);
}

int blocks(const ExpertRowsCall& call) { return blocks_for(call.tokens * (call.dim / kWidth), kBlock); }

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

template <typename T>
__global__ void __launch_bounds__(kBlock) swiglu_kernel(WeightedSwigluCall call, T* y) {
  const unsigned index = blockIdx.x * kBlock + threadIdx.x, pieces = static_cast<unsigned>(call.columns) / kWidth;
  const int64_t row = index / pieces, column = index % pieces * kWidth;
  if (row >= call.rows) return;
  const T* const from = static_cast<const T*>(call.gate_up) + row * 2 * call.columns + column;
  const float prob = call.probs ? call.probs[call.slots[row]] : 1.0f;
  float gate[kWidth], up[kWidth];
  load(from, gate);
  load(from + call.columns, up);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) gate[i] = gate[i] * sigmoid(gate[i]) * up[i] * prob;
  store(y + row * call.columns + column, gate);
}

// A warp a row: the gradient of its probability is a sum over the columns.
template <typename T>
__global__ void __launch_bounds__(kBlock) swiglu_backward_kernel(WeightedSwigluCall call, WeightedSwigluGrads out) {
  const int64_t row = int64_t(blockIdx.x) * (kBlock / 32) + threadIdx.x / 32;
  if (row >= call.rows) return;  // whole warps alone
  const int lane = threadIdx.x % 32;
  const T* const from = static_cast<const T*>(call.gate_up) + row * 2 * call.columns;
  const T* const grad_y = static_cast<const T*>(out.grad_y) + row * call.columns;
  T* const grads = static_cast<T*>(out.grads) + row * 2 * call.columns;
  T* const y = static_cast<T*>(out.y) + row * call.columns;
  const int64_t slot = call.probs ? call.slots[row] : 0;
  const float prob = call.probs ? call.probs[slot] : 1.0f;
  float grad_prob = 0;
  for (int column = lane * kWidth; column < call.columns; column += 32 * kWidth) {
    float gate[kWidth], up[kWidth], grad[kWidth], activation[kWidth];
    load(from + column, gate);
    load(from + call.columns + column, up);
    load(grad_y + column, grad);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float s = sigmoid(gate[i]), silu = gate[i] * s, plain = silu * up[i], weighted = grad[i] * prob;
      grad_prob += grad[i] * plain;
      activation[i] = plain * prob;
      gate[i] = weighted * up[i] * (s + silu * (1.0f - s));
      up[i] = weighted * silu;
    }
    store(grads + column, gate);
    store(grads + call.columns + column, up);
    store(y + column, activation);
  }
  if (!out.grad_probs) return;
  grad_prob = group_sum<32>(grad_prob, nullptr);
  if (lane == 0) out.grad_probs[slot] = grad_prob;
}

template <typename T>
__global__ void __launch_bounds__(kBlock) add_kernel(AddProductsCall call) {
  const int expert = blockIdx.y;
  if (call.ends[expert] == (expert > 0 ? call.ends[expert - 1] : 0)) return;
  const int64_t at = (int64_t(blockIdx.x) * kBlock + threadIdx.x) * kWidth, part_size = call.size / call.parts;
  if (at >= call.size) return;
  const int64_t part = at / part_size;
  float* const sum = call.sum + expert * call.sum_stride + part * call.part_stride + (at - part * part_size);
  float a[kWidth], b[kWidth];
  load(static_cast<const T*>(call.product) + expert * call.product_stride + at, b);
  load(sum, a);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) a[i] += b[i];
  store(sum, a);
}

}  // namespace

void spread_rows(const ExpertRowsCall& call, const void* from, void* to, CUstream_st* stream) {
  if (call.tokens == 0) return;
  with_element(call.type, [&](auto value) {
    using T = decltype(value);
    spread_kernel<<<blocks(call), kBlock, 0, stream>>>(call, static_cast<const T*>(from), static_cast<T*>(to));
  });
  check_launch("spread_rows");
}

void sum_rows(const ExpertRowsCall& call, const void* from, void* to, CUstream_st* stream) {
  if (call.tokens == 0) return;
  with_element(call.type, [&](auto value) {
    using T = decltype(value);
    sum_kernel<<<blocks(call), kBlock, 0, stream>>>(call, static_cast<const T*>(from), static_cast<T*>(to));
  });
  check_launch("sum_rows");
}

void weighted_swiglu(const WeightedSwigluCall& call, void* y, CUstream_st* stream) {
  if (call.rows == 0) return;
  const int count = blocks_for(call.rows * (call.columns / kWidth), kBlock);
  with_element(call.type, [&](auto value) {
    swiglu_kernel<<<count, kBlock, 0, stream>>>(call, static_cast<decltype(value)*>(y));
  });
  check_launch("weighted_swiglu");
}

void weighted_swiglu_backward(const WeightedSwigluCall& call, const WeightedSwigluGrads& grads, CUstream_st* stream) {
  if (call.rows == 0) return;
  const int count = blocks_for(call.rows, kBlock / 32);
  with_element(call.type,
               [&](auto value) { swiglu_backward_kernel<decltype(value)><<<count, kBlock, 0, stream>>>(call, grads); });
  check_launch("weighted_swiglu_backward");
}

void add_products(const AddProductsCall& call, CUstream_st* stream) {
  if (call.experts == 0 || call.size == 0) return;
  const dim3 grid(blocks_for(call.size / kWidth, kBlock), call.experts);
  with_element(call.type, [&](auto value) { add_kernel<decltype(value)><<<grid, kBlock, 0, stream>>>(call); });
  check_launch("add_products");
}

}  // namespace hexad::modeling::cuda
