// Matrix products of a decoder on a CPU. Every element of the result is the same sequence of operations on the same
// operands, whatever the number of rows and threads: results do not depend on what else is in the batch.
#pragma once
#include <cstdint>
#include <span>

#include "plugins/native/cpu/simd.hpp"

namespace hexad::native::cpu {

// One weight of a product: out[m, n] (+)= sum over k of x[m, k] * weight[n, k], + bias[n].
struct Product {
  const void* weight;  // [n, k] contiguous, of the element type named in multiply()
  const float* bias;   // [n], or null
  float* out;          // [rows, n] contiguous
  int64_t n;
  bool add;  // onto what `out` holds
};

// x [rows, k] fp32 against one or more weights, in parallel over their rows. fp32 sums.
template <typename T>  // float or BFloat16
void multiply(const float* x, int64_t rows, int64_t k, std::span<const Product> products);

}  // namespace hexad::native::cpu
