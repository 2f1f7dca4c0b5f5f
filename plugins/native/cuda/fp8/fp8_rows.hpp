// Rows in FP8 (e4m3) with a scale each: x = value * scale, scale = max |x| / 448. As model/fp8_rows.hpp has it, whose
// plain form these kernels equal bit for bit where their input is the same.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace hexad::native::cuda {

inline constexpr int kMostFp8Width = 32768;

struct Fp8Out {
  uint8_t* values;  // e4m3 [rows, width]
  float* scales;    // [rows]
};

// x bf16 [rows, width]; width is a multiple of 8, at most kMostFp8Width; both begin on 16 bytes.
void fp8_rows(const __nv_bfloat16* x, const Fp8Out& out, int rows, int width, cudaStream_t stream);

// Of silu(gate) * up in fp32, with gate_up bf16 [rows, 2 * width], the gate first.
void swiglu_fp8(const __nv_bfloat16* gate_up, const Fp8Out& out, int rows, int width, cudaStream_t stream);

}  // namespace hexad::native::cuda
