#include "modeling/op/cuda/residual_kernel.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWidth = 8;

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
