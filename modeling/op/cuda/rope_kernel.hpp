// Rotary embedding of the queries and keys of a fused projection.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

// One of queries, keys, values: [tokens, heads, D] with `stride` elements between tokens.
struct HeadRows {
  const void* data = nullptr;
  int64_t stride = 0;
  int heads = 0;
};

// out [tokens, sum of heads, D], contiguous: parts[0] and parts[1] rotated by the angles of cos and sin (fp32 [tokens,
// D / 2]; direction -1: back), parts[2] copied. D = 2 * half, a multiple of 16.
struct RopeCall {
  HeadRows parts[3];
  const float* cos = nullptr;
  const float* sin = nullptr;
  void* out = nullptr;
  int64_t tokens = 0;
  int half = 0;
  float direction = 1;
  Element type = Element::f32;
};
void rotate_heads(const RopeCall& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
