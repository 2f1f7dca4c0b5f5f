// Products of tiles by a warp on tensor cores, in bf16 with sums in fp32.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

namespace hexad::modeling::cuda {

// sum [16, 8] += a [16, 16] * b [16, 8] (PTX ISA, mma.m16n8k16). Of a sum a lane has row lane / 4, columns
// lane % 4 * 2 + {0, 1}, then the same of row lane / 4 + 8. a0 .. a3: pairs of rows lane / 4 and that + 8 at columns
// lane % 4 * 2, then of both at that + 8; b0, b1: pairs of column lane / 4 at rows lane % 4 * 2 and that + 8.
__device__ inline void multiply_tile(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                     uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A pair for it, rounded to nearest even.
__device__ inline uint32_t packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

}  // namespace hexad::modeling::cuda
