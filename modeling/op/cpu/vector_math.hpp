// Building blocks of the CPU kernels. The kernels are plain loops that the compiler vectorises for the instruction set
// found at run time (VECTOR_CLONES); no reduction depends on how many rows or threads there are.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HEXAD_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HEXAD_VECTOR_CLONES
#endif
#define HEXAD_INLINE inline __attribute__((always_inline))

namespace hexad::modeling::cpu {

struct BFloat16 {
  uint16_t bits;
};

HEXAD_INLINE float load(const float* x) { return *x; }
HEXAD_INLINE float load(const BFloat16* x) {
  const uint32_t bits = uint32_t(x->bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

HEXAD_INLINE void store(float* x, float value) { *x = value; }
// Rounds to nearest even; nan stays nan.
HEXAD_INLINE void store(BFloat16* x, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  x->bits = uint16_t(value == value ? rounded : 0x7fc0);
}

// e^x with a relative error below 2e-7 (range reduction by ln 2 in two parts, then a polynomial of degree 6); 0 below
// -87.3, e^88.3 above 88.3.
HEXAD_INLINE float exp_approx(float x) {
  const float clamped = x < -87.3f ? -87.3f : (x > 88.3f ? 88.3f : x);
  const float scaled = clamped * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: rounds to an integer in the low bits
  const float n = scaled - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t exponent = (int32_t(n) + 127) << 23;
  float power;
  std::memcpy(&power, &exponent, sizeof power);
  return x < -87.3f ? 0.0f : p * power;
}

}  // namespace hexad::modeling::cpu
