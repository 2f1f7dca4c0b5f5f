// A block's row on its way to FP8: its largest magnitude, the factor that follows from it, and the cast.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/fp8/fp8_format.cuh"

namespace hexad::native::cuda {

// Without their sign, bits of floating-point numbers are in the order of the numbers, with what is none at the end.
__device__ inline uint32_t magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// Of all threads of the block, which all call it once.
template <int kThreads>
__device__ inline uint32_t block_largest(uint32_t bits) {
  __shared__ uint32_t parts[kThreads / 32];
  bits = __reduce_max_sync(~0u, bits);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = bits;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) bits = max(bits, parts[i]);
  return bits;
}

// value = x * factor; the row's scale is its reciprocal. What is not finite makes all of its row so.
__device__ inline float fp8_factor(uint32_t largest) {
  return modeling::cuda::factor_of<modeling::cuda::E4m3>(__uint_as_float(largest));
}

// Four values, the first in the lowest byte.
__device__ inline uint32_t fp8_word(float a, float b, float c, float d, float factor) {
  return modeling::cuda::fp8_word<modeling::cuda::E4m3>(__fmul_rn(a, factor), __fmul_rn(b, factor),
                                                        __fmul_rn(c, factor), __fmul_rn(d, factor));
}

}  // namespace hexad::native::cuda
