// Rounding of fp32 activations to the model's dtype.
#pragma once
#include <cstdint>

#include "plugins/native/cpu/simd.hpp"

namespace hexad::native::cpu {

// Each of the n values becomes the nearest T (float: nothing to do).
template <typename T>
inline void round_to(float* x, int64_t n) {
  if constexpr (sizeof(T) == sizeof(float)) return;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) store<4>(x + i, rounded<4, T>(load<4>(x + i)));
  for (; i < n; ++i) {
    T value;
    from_float(x[i], value);
    x[i] = to_float(value);
  }
}

}  // namespace hexad::native::cpu
