// The formats of FP8, the factor that a largest magnitude asks for, and four numbers cast at once.
#pragma once
#include <cuda_fp8.h>

#include <cfloat>
#include <cstdint>

namespace hexad::modeling::cuda {

struct E4m3 {
  static constexpr float kLargest = 448.0f;
  static constexpr __nv_fp8_interpretation_t kType = __NV_E4M3;
};
struct E5m2 {
  static constexpr float kLargest = 57344.0f;
  static constexpr __nv_fp8_interpretation_t kType = __NV_E5M2;
};

template <typename F>
__device__ inline float factor_of(float largest) {
  if (largest == 0) return 1.0f;
  const float factor = __fdiv_rn(F::kLargest, largest);
  return factor > FLT_MAX ? FLT_MAX : factor;  // not a number stays so
}

// Four numbers, rounded to nearest even.
template <typename F>
__device__ inline uint32_t fp8_word(float a, float b, float c, float d) {
  const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, F::kType);
  const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, F::kType);
  return low | high << 16;
}

}  // namespace hexad::modeling::cuda
