// RMSNorm of rows, alone or of a sum that it forms on the way, and the stream of hidden states that it reads: fp32 sums
// of 16-bit parts. fp32 arithmetic.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

// Rows lie in groups: row r begins at (r / per_group) * group_stride + (r % per_group) * dim, as the heads of a token
// do in a fused projection. `dim` and group_stride are multiples of 8; pointers are aligned to 16 bytes.
struct NormRows {
  int64_t rows = 0;
  int dim = 0;
  int per_group = 1;
  int64_t group_stride = 0;
};

// The widest row that the kernels take.
inline constexpr int kMaxNormDim = 16384;

// y[r] = s[r] * inv_rms[r] * weight with s = x, or with delta s = x + delta, which is then written to `sum` (in x's
// type). inv_rms is fp32 [rows]. x may be strided; y, sum and delta are contiguous. y, weight and delta have one type.
struct RmsNormForward {
  NormRows shape;
  float eps = 0;
  const void* x = nullptr;
  const void* delta = nullptr;  // may be null, then so is sum
  const void* weight = nullptr;
  void* sum = nullptr;
  void* y = nullptr;
  float* inv_rms = nullptr;
  Element x_type = Element::f32, y_type = Element::f32;
};
void rms_norm_forward(const RmsNormForward& call, CUstream_st* stream);

// grad_x = d(y)/d(s) grad_y (+ grad_sum), in x's type, and the same rounded to y's type in grad_delta where that is
// wanted. The gradient of the weight is left in `partial`, fp32 [partial_rows(shape), dim], to be summed over rows.
struct RmsNormBackward {
  NormRows shape;
  const void* grad_y = nullptr;    // contiguous
  const void* grad_sum = nullptr;  // x's type, contiguous; may be null
  const void* x = nullptr;         // the sum, where one was formed
  const void* weight = nullptr;
  const float* inv_rms = nullptr;
  void* grad_x = nullptr;      // contiguous
  void* grad_delta = nullptr;  // y's type; may be null
  float* partial = nullptr;
  Element x_type = Element::f32, y_type = Element::f32;
};
int64_t partial_rows(const NormRows& shape);
void rms_norm_backward(const RmsNormBackward& call, CUstream_st* stream);

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
