#include "modeling/op/cpu/rope_kernel.hpp"

namespace hexad::modeling::cpu {
namespace {

template <typename T>
HEXAD_INLINE void rotate(const T* x, const float* cos, const float* sin, T* y, int64_t tokens, int64_t heads,
                         int64_t half, float direction) {
  for (int64_t token = 0; token < tokens; ++token, cos += half, sin += half) {
    for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half) {
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = load(x + i), b = load(x + half + i), s = direction * sin[i];
        store(y + i, a * cos[i] - b * s);
        store(y + half + i, b * cos[i] + a * s);
      }
    }
  }
}

}  // namespace

HEXAD_VECTOR_CLONES
void rope_rotate(const float* x, const float* cos, const float* sin, float* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction) {
  rotate(x, cos, sin, y, tokens, heads, half, direction);
}

HEXAD_VECTOR_CLONES
void rope_rotate(const BFloat16* x, const float* cos, const float* sin, BFloat16* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction) {
  rotate(x, cos, sin, y, tokens, heads, half, direction);
}

}  // namespace hexad::modeling::cpu
