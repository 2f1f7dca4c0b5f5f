#include "modeling/op/cuda/rope_kernel.hpp"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWidth = 8;

// A thread takes kWidth elements of the first half of a head, and their partners in the second.
template <typename T>
__global__ void __launch_bounds__(kBlock) rotate_kernel(RopeCall call) {
  const unsigned pieces = call.half / kWidth;
  const unsigned heads = call.parts[0].heads + call.parts[1].heads + call.parts[2].heads;
  const unsigned index = blockIdx.x * kBlock + threadIdx.x, token = index / (heads * pieces);
  if (token >= call.tokens) return;
  const unsigned within = index % (heads * pieces), column = within % pieces * kWidth, out_head = within / pieces;
  const unsigned keys = call.parts[0].heads, values = keys + call.parts[1].heads;
  const bool rotated = out_head < values;
  const HeadRows rows = out_head < keys ? call.parts[0] : rotated ? call.parts[1] : call.parts[2];
  const unsigned head = out_head - (out_head < keys ? 0 : rotated ? keys : values);
  const T* from = static_cast<const T*>(rows.data) + token * rows.stride + int64_t(head) * 2 * call.half + column;
  T* to = static_cast<T*>(call.out) + (int64_t(token) * heads + out_head) * 2 * call.half + column;
  float first[kWidth], second[kWidth];
  load(from, first);
  load(from + call.half, second);
  if (rotated) {
    float cos[kWidth], sin[kWidth];
    load(call.cos + int64_t(token) * call.half + column, cos);
    load(call.sin + int64_t(token) * call.half + column, sin);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float a = first[i], b = second[i], s = call.direction * sin[i];
      first[i] = a * cos[i] - b * s;
      second[i] = b * cos[i] + a * s;
    }
  }
  store(to, first);
  store(to + call.half, second);
}

}  // namespace

void rotate_heads(const RopeCall& call, CUstream_st* stream) {
  const int64_t heads = call.parts[0].heads + call.parts[1].heads + call.parts[2].heads;
  const int64_t items = call.tokens * heads * (call.half / kWidth);
  if (items == 0) return;
  with_element(call.type, [&](auto value) {
    rotate_kernel<decltype(value)><<<blocks_for(items, kBlock), kBlock, 0, stream>>>(call);
  });
  check_launch("rotate_heads");
}

}  // namespace hexad::modeling::cuda
