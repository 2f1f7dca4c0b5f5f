// Vectors of N floats on GCC's vector extensions, for kernels that are compiled once per instruction set. Everything is
// inlined into the kernel's entry point, whose target attribute decides what instructions come out.
#pragma once
#include <cstdint>
#include <cstring>

#define HEXAD_INLINE inline __attribute__((always_inline))

namespace hexad::native::cpu {

// A bfloat16: the upper half of a float.
struct BFloat16 {
  uint16_t bits;
};

// An e4m3: a sign, an exponent of four bits (bias 7), three bits behind it. 0x7f is not a number; none is infinite.
struct Float8 {
  uint8_t bits;
};

template <int N>
struct Vector {
  typedef float F __attribute__((vector_size(N * 4)));
  typedef int32_t I __attribute__((vector_size(N * 4)));
  typedef uint32_t U __attribute__((vector_size(N * 4)));
  typedef uint16_t H __attribute__((vector_size(N * 2)));
  typedef uint8_t B __attribute__((vector_size(N)));
};
template <int N>
using VecF = typename Vector<N>::F;
template <int N>
using VecI = typename Vector<N>::I;

HEXAD_INLINE float to_float(float x) { return x; }
HEXAD_INLINE float to_float(BFloat16 x) {
  const uint32_t bits = uint32_t(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
// Moves the bits to a float's place and the exponent to its bias.
HEXAD_INLINE float to_float(Float8 x) {
  const uint32_t bits = uint32_t(x.bits & 0x80) << 24 | uint32_t(x.bits & 0x7f) << 20;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return (x.bits & 0x7f) == 0x7f ? __builtin_nanf("") : value * 0x1p120f;
}
HEXAD_INLINE void from_float(float value, float& x) { x = value; }
// Rounds to nearest even.
HEXAD_INLINE void from_float(float value, BFloat16& x) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  x.bits = uint16_t(value == value ? (bits + 0x7fff + ((bits >> 16) & 1)) >> 16 : 0x7fc0);
}
// Rounds to nearest even; magnitudes above 448, the largest, become it.
HEXAD_INLINE void from_float(float value, Float8& x) {
  const float size = __builtin_fabsf(value), magnitude = size < 448.0f ? size : 448.0f;
  const bool tiny = magnitude < 0x1p-6f;  // there steps are 2^-9, those of a float beside 2^14
  const float shifted = tiny ? magnitude + 0x1p14f : magnitude;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const uint32_t rounded = tiny ? bits & 0xf : ((bits + 0x7ffff + ((bits >> 20) & 1)) >> 20) - (120 << 3);
  x.bits = uint8_t((value == value ? rounded : 0x7f) | (__builtin_signbit(value) ? 0x80 : 0));
}

template <int N>
HEXAD_INLINE VecF<N> load(const float* p) {
  VecF<N> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <int N>
HEXAD_INLINE VecF<N> load(const BFloat16* p) {
  typename Vector<N>::H half;
  std::memcpy(&half, p, sizeof half);
  return (VecF<N>)(__builtin_convertvector(half, typename Vector<N>::U) << 16);
}
template <int N>
HEXAD_INLINE VecF<N> load(const Float8* p) {
  typename Vector<N>::B bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  const auto bits = __builtin_convertvector(bytes, typename Vector<N>::U);
  const auto magnitude = bits & 0x7f;
  const VecF<N> value = (VecF<N>)((bits & 0x80) << 24 | magnitude << 20) * 0x1p120f;
  return magnitude == 0x7f ? VecF<N>{} + __builtin_nanf("") : value;
}
// The first n < N elements, zeros after them.
template <int N, typename T>
HEXAD_INLINE VecF<N> load_part(const T* p, int64_t n) {
  float values[N] = {};
  for (int64_t i = 0; i < n; ++i) values[i] = to_float(p[i]);
  return load<N>(values);
}
template <int N>
HEXAD_INLINE void store(float* p, VecF<N> v) {
  std::memcpy(p, &v, sizeof v);
}

// Sum of all lanes in a fixed order: halves onto each other.
template <int N>
HEXAD_INLINE float sum(VecF<N> v) {
  float a[N];
  store<N>(a, v);
#pragma GCC unroll 8
  for (int width = N / 2; width > 0; width /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) a[i] += a[i + width];
  }
  return a[0];
}
template <int N>
HEXAD_INLINE float max(VecF<N> v) {
  float a[N];
  store<N>(a, v);
#pragma GCC unroll 8
  for (int width = N / 2; width > 0; width /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) a[i] = a[i] > a[i + width] ? a[i] : a[i + width];
  }
  return a[0];
}

// e^x for x <= 0, relative error below 2e-7: range reduction by ln 2 in two parts, then a polynomial of degree 6 (the
// coefficients of Cephes' expf). 0 below -87.3, and for -inf.
template <int N>
HEXAD_INLINE VecF<N> exp_negative(VecF<N> x) {
  using F = VecF<N>;
  using I = VecI<N>;
  const I tiny = x < -87.3f;
  const F clamped = tiny ? F{} - 87.3f : x;
  const F scaled = clamped * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the integer is in the low bits
  const F n = scaled - 12582912.0f;
  const F r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  F p = F{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const I exponent = (__builtin_convertvector(n, I) + 127) << 23;
  return tiny ? F{} : p * (F)exponent;
}

}  // namespace hexad::native::cpu
