// RMS norms over the residual stream, each fused with what comes before it. The stream is fp32 [rows, hidden], what the
// next product reads is bf16 [rows, hidden]; sums in fp32. `hidden` is a multiple of 4, at most kMaxHidden.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/native/cuda/fp8/fp8_rows.hpp"

namespace hexad::native::cuda {

inline constexpr int kMaxHidden = 16384;

struct NormShape {
  int rows, hidden;
  float eps;
};

// residual[r] = embedding[ids[r]]; normed = rms_norm(residual) * weight. An id below 0 stands for draws[~id]: a token
// that the pass before has drawn and the host does not know; a draw that failed counts as token 0.
void embed_norm(const __nv_bfloat16* embedding, const int32_t* ids, const int32_t* draws, const __nv_bfloat16* weight,
                float* residual, __nv_bfloat16* normed, const NormShape& shape, cudaStream_t stream);

// residual += delta; normed = rms_norm(residual) * weight.
void add_norm(const __nv_bfloat16* delta, const __nv_bfloat16* weight, float* residual, __nv_bfloat16* normed,
              const NormShape& shape, cudaStream_t stream);

// The same two with `normed` in FP8, cast from fp32.
void embed_norm(const __nv_bfloat16* embedding, const int32_t* ids, const int32_t* draws, const __nv_bfloat16* weight,
                float* residual, const Fp8Out& normed, const NormShape& shape, cudaStream_t stream);
void add_norm(const __nv_bfloat16* delta, const __nv_bfloat16* weight, float* residual, const Fp8Out& normed,
              const NormShape& shape, cudaStream_t stream);

// out[i] = rms_norm(residual[rows[i]] + delta[rows[i]]) * weight for i < shape.rows.
void add_norm_of_rows(const int32_t* rows, const __nv_bfloat16* delta, const __nv_bfloat16* weight,
                      const float* residual, __nv_bfloat16* out, const NormShape& shape, cudaStream_t stream);

}  // namespace hexad::native::cuda
