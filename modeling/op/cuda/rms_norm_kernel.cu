#include "modeling/op/cuda/rms_norm_kernel.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWidth = 8;  // elements a thread takes at a time
constexpr int kBackwardBlocks = 132 * 4;

__device__ inline int64_t row_offset(const NormRows& shape, int64_t row) {
  return row / shape.per_group * shape.group_stride + row % shape.per_group * shape.dim;
}

// kThreads threads work on a row, each on kPieces runs of kWidth elements, which stay in registers.
template <typename X, typename Y, int kThreads, int kPieces>
__global__ void __launch_bounds__(kBlock) forward_kernel(RmsNormForward call) {
  __shared__ float scratch[kBlock / 32];
  const NormRows shape = call.shape;
  const int lane = threadIdx.x % kThreads;
  const int64_t row = int64_t(blockIdx.x) * (kBlock / kThreads) + threadIdx.x / kThreads;
  const bool active = row < shape.rows;
  const X* x = static_cast<const X*>(call.x) + (active ? row_offset(shape, row) : 0);
  const int64_t at = row * shape.dim;
  float values[kPieces][kWidth], square = 0;
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    const int column = (p * kThreads + lane) * kWidth;
    if (!active || column >= shape.dim) continue;
    load(x + column, values[p]);
    if (call.delta) {
      float delta[kWidth];
      load(static_cast<const Y*>(call.delta) + at + column, delta);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[p][i] += delta[i];
      store(static_cast<X*>(call.sum) + at + column, values[p]);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) square += values[p][i] * values[p][i];
  }
  const float inv = rsqrtf(group_sum<kThreads>(square, scratch) / shape.dim + call.eps);
  if (!active) return;
  if (lane == 0) call.inv_rms[row] = inv;
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    const int column = (p * kThreads + lane) * kWidth;
    if (column >= shape.dim) continue;
    float weight[kWidth];
    load(static_cast<const Y*>(call.weight) + column, weight);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[p][i] *= inv * weight[i];
    store(static_cast<Y*>(call.y) + at + column, values[p]);
  }
}

// A fixed grid walks over the rows, so that the sums of the weight's gradient do not depend on scheduling.
template <typename X, typename Y, int kThreads, int kPieces>
__global__ void __launch_bounds__(kBlock) backward_kernel(RmsNormBackward call) {
  constexpr int kRows = kBlock / kThreads;
  __shared__ float scratch[kBlock / 32];
  const NormRows shape = call.shape;
  const int lane = threadIdx.x % kThreads;
  const int64_t group = int64_t(blockIdx.x) * kRows + threadIdx.x / kThreads;
  float sums[kPieces][kWidth] = {};
  // All threads of the block take the same number of turns: group_sum meets at barriers.
  for (int64_t first = int64_t(blockIdx.x) * kRows; first < shape.rows; first += int64_t(gridDim.x) * kRows) {
    const int64_t row = first + threadIdx.x / kThreads;
    const bool active = row < shape.rows;
    const X* x = static_cast<const X*>(call.x) + (active ? row_offset(shape, row) : 0);
    const int64_t at = row * shape.dim;
    const float inv = active ? call.inv_rms[row] : 0;
    float normed[kPieces][kWidth], scaled[kPieces][kWidth], dot = 0;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const int column = (p * kThreads + lane) * kWidth;
      if (!active || column >= shape.dim) continue;
      float weight[kWidth];
      load(x + column, normed[p]);
      load(static_cast<const Y*>(call.grad_y) + at + column, scaled[p]);
      load(static_cast<const Y*>(call.weight) + column, weight);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        normed[p][i] *= inv;
        sums[p][i] += scaled[p][i] * normed[p][i];
        scaled[p][i] *= weight[i];
        dot += scaled[p][i] * normed[p][i];
      }
    }
    const float mean = group_sum<kThreads>(dot, scratch) / shape.dim;
    if (!active) continue;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const int column = (p * kThreads + lane) * kWidth;
      if (column >= shape.dim) continue;
      float grad[kWidth];
      if (call.grad_sum) {
        load(static_cast<const X*>(call.grad_sum) + at + column, grad);
      } else {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) grad[i] = 0;
      }
      // Rounded as the sum of two gradients is: recomputed norms, whose sums are autograd's, have the same bits.
#pragma unroll
      for (int i = 0; i < kWidth; ++i) grad[i] = __fadd_rn(grad[i], __fmul_rn(inv, scaled[p][i] - normed[p][i] * mean));
      store(static_cast<X*>(call.grad_x) + at + column, grad);
      if (call.grad_delta) store(static_cast<Y*>(call.grad_delta) + at + column, grad);
    }
  }
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    const int column = (p * kThreads + lane) * kWidth;
    if (column < shape.dim) store(call.partial + group * shape.dim + column, sums[p]);
  }
}

// Calls body(threads a row, pieces a thread) with compile-time numbers that cover `dim`.
template <typename Body>
void with_row_shape(int dim, Body&& body) {
  using std::integral_constant;
  constexpr integral_constant<int, 32> warp;
  constexpr integral_constant<int, kBlock> block;
  if (dim <= 32 * kWidth) return body(warp, integral_constant<int, 1>());
  if (dim <= kBlock * kWidth) return body(block, integral_constant<int, 1>());
  if (dim <= 2 * kBlock * kWidth) return body(block, integral_constant<int, 2>());
  if (dim <= 4 * kBlock * kWidth) return body(block, integral_constant<int, 4>());
  return body(block, integral_constant<int, 8>());
}

// The kinds of rows that models have: 16-bit or fp32 throughout, and an fp32 stream beside 16-bit weights.
template <typename Body>
void with_types(Element x, Element y, Body&& body) {
  with_element(y, [&](auto y_value) {
    if (x == y) return body(y_value, y_value);
    if (x == Element::f32) return body(float{}, y_value);
    throw std::runtime_error("rms_norm: the rows are neither fp32 nor of the weight's type");
  });
}

int rows_per_block(int dim) { return dim <= 32 * kWidth ? kBlock / 32 : 1; }

int backward_blocks(const NormRows& shape) {
  return std::max(1, std::min(kBackwardBlocks, blocks_for(shape.rows, rows_per_block(shape.dim))));
}

template <typename T>
__global__ void __launch_bounds__(kBlock) add_kernel(const float* hidden, const T* delta, float* sum, int64_t count) {
  const int64_t at = (int64_t(blockIdx.x) * kBlock + threadIdx.x) * kWidth;
  if (at >= count) return;
  float a[kWidth], b[kWidth];
  load(hidden + at, a);
  load(delta + at, b);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) a[i] += b[i];
  store(sum + at, a);
}

template <typename T>
__global__ void __launch_bounds__(kBlock) embed_kernel(EmbedCall call) {
  const unsigned pieces = call.dim / kWidth, index = blockIdx.x * kBlock + threadIdx.x, token = index / pieces;
  if (token >= call.tokens) return;
  const unsigned column = index % pieces * kWidth;
  const int64_t row = call.ids[token];
  float values[kWidth] = {};
  if (row >= 0 && row < call.rows) load(static_cast<const T*>(call.table) + row * call.dim + column, values);
  store(call.out + int64_t(token) * call.dim + column, values);
}

}  // namespace

void rms_norm_forward(const RmsNormForward& call, CUstream_st* stream) {
  if (call.shape.rows == 0) return;
  with_types(call.x_type, call.y_type, [&](auto x, auto y) {
    with_row_shape(call.shape.dim, [&](auto threads, auto pieces) {
      const int blocks = blocks_for(call.shape.rows, kBlock / threads());
      forward_kernel<decltype(x), decltype(y), threads(), pieces()><<<blocks, kBlock, 0, stream>>>(call);
    });
  });
  check_launch("rms_norm_forward");
}

int64_t partial_rows(const NormRows& shape) { return int64_t(backward_blocks(shape)) * rows_per_block(shape.dim); }

void rms_norm_backward(const RmsNormBackward& call, CUstream_st* stream) {
  with_types(call.x_type, call.y_type, [&](auto x, auto y) {
    with_row_shape(call.shape.dim, [&](auto threads, auto pieces) {
      backward_kernel<decltype(x), decltype(y), threads(), pieces()>
          <<<backward_blocks(call.shape), kBlock, 0, stream>>>(call);
    });
  });
  check_launch("rms_norm_backward");
}

void residual_add(const float* hidden, const void* delta, float* sum, int64_t count, Element type,
                  CUstream_st* stream) {
  if (count == 0) return;
  with_element(type, [&](auto value) {
    add_kernel<<<blocks_for(count / kWidth, kBlock), kBlock, 0, stream>>>(
        hidden, static_cast<const decltype(value)*>(delta), sum, count);
  });
  check_launch("residual_add");
}

void embed_rows(const EmbedCall& call, CUstream_st* stream) {
  if (call.tokens == 0) return;
  with_element(call.type, [&](auto value) {
    embed_kernel<decltype(value)><<<blocks_for(call.tokens * (call.dim / kWidth), kBlock), kBlock, 0, stream>>>(call);
  });
  check_launch("embed_rows");
}

}  // namespace hexad::modeling::cuda
