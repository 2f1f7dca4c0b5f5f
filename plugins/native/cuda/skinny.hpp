// Products of few rows with a weight, bound by reading the weight once: what a decoding step with few sequences is.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace hexad::native::cuda {

inline constexpr int kMostSkinnyRows = 16;

// rows <= kMostSkinnyRows, `in` a multiple of 256, `out` of 16.
bool is_skinny(int rows, int in, int out);

// y [rows, out] = x [rows, in] * weight [out, in]^T + bias [out] (null: none), bf16, sums in fp32; y in bf16 or fp32.
// Rows do not depend on each other. For is_skinny() shapes.
void multiply_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, __nv_bfloat16* y,
                     int rows, int in, int out, cudaStream_t stream);
void multiply_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, float* y, int rows, int in, int out,
                     cudaStream_t stream);

// y [rows, width] = silu(x * gate^T) * (x * up^T) with weight [2 * width, in]: gate, then up.
void swiglu_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int rows, int in, int width,
                   cudaStream_t stream);

// The same with a weight in FP8, widened on its way to the tensor cores; x stays bf16. rows <= kMostSkinnyRows, `in` a
// multiple of 64, `out` and `width` of 16.
struct Fp8Weight {
  const uint8_t* values;  // e4m3 [out, in]
  const float* scales;    // [out]
};
void multiply_skinny(const __nv_bfloat16* x, const Fp8Weight& weight, const __nv_bfloat16* bias, __nv_bfloat16* y,
                     int rows, int in, int out, cudaStream_t stream);
void swiglu_skinny(const __nv_bfloat16* x, const Fp8Weight& weight, __nv_bfloat16* y, int rows, int in, int width,
                   cudaStream_t stream);

}  // namespace hexad::native::cuda
