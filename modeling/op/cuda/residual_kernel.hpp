// The stream of hidden states: fp32 sums of 16-bit parts.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

// sum[i] = hidden[i] + delta[i]; hidden and sum are fp32, delta is of `type`. `count` is a multiple of 8.
void residual_add(const float* hidden, const void* delta, float* sum, int64_t count, Element type, CUstream_st* stream);

// out[token] = float(table[ids[token]]), `dim` (a multiple of 8) elements each; ids outside [0, rows) give zeros.
struct EmbedCall {
  const void* table = nullptr;
  const int64_t* ids = nullptr;
  float* out = nullptr;
  int64_t tokens = 0, rows = 0;
  int dim = 0;
  Element type = Element::f32;
};
void embed_rows(const EmbedCall& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
