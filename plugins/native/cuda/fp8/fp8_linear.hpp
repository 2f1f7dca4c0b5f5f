// Linears in FP8 on a GPU: casts of rows, and products whose scales lie along both outer dimensions.
#pragma once
#include <ATen/core/Tensor.h>
#include <cuda_bf16.h>

#include "plugins/native/cuda/fp8/fp8_rows.hpp"
#include "plugins/native/cuda/skinny.hpp"

namespace hexad::native::cuda {

// A tensor as the kernels take it; null where it is undefined.
inline __nv_bfloat16* bf16(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<__nv_bfloat16*>(tensor.data_ptr()) : nullptr;
}

// What a product reads: bf16 [rows, width] without scales, or e4m3 with a scale for each row, fp32 [rows].
struct Rows {
  at::Tensor values, scales;
  bool is_fp8() const { return scales.defined(); }
  Fp8Out fp8() const { return {static_cast<uint8_t*>(values.data_ptr()), scales.data_ptr<float>()}; }
};

inline Fp8Weight fp8_weight(const at::Tensor& values, const at::Tensor& scales) {
  return {static_cast<const uint8_t*>(values.const_data_ptr()), scales.const_data_ptr<float>()};
}

// x bf16 [R, C] into e4m3 values [R, C] and scales fp32 [R], all contiguous and on 16 bytes; C is a multiple of 8, at
// most kMostFp8Width. Enqueued on LibTorch's current stream, as are the products.
void cast_rows(const at::Tensor& x, const at::Tensor& values, const at::Tensor& scales);

// out bf16 [rows, N] = x * weight^T + bias [N] (or undefined), weight e4m3 [N, K] with scales [N]; N and K are
// multiples of 16. Rows in FP8 meet it on the FP8 tensor cores; few rows in bf16 (kMostSkinnyRows), K a multiple of 64,
// meet the weight widened.
void multiply_fp8(const Rows& x, const at::Tensor& weight, const at::Tensor& scales, const at::Tensor& bias,
                  const at::Tensor& out);

}  // namespace hexad::native::cuda
