// Matrix products of a decoder on a CPU. Every element of the result is the same sequence of operations on the same
// operands, whatever the number of rows and threads: results do not depend on what else is in the batch.
#pragma once
#include <cstdint>
#include <span>

#include "plugins/native/cpu/simd.hpp"

namespace hexad::native::cpu {

// A weight [n, k] is kept packed: panels of kPanel of its rows, each transposed to [k, kPanel], zeros after the last
// row.
inline constexpr int64_t kPanel = 32;
constexpr int64_t packed_elements(int64_t n, int64_t k) { return (n + kPanel - 1) / kPanel * kPanel * k; }
// weight: [n, k] contiguous; packed: [packed_elements(n, k)].
template <typename T>  // float or BFloat16
void pack(const T* weight, int64_t n, int64_t k, T* packed);
// Row n as fp32 [k].
template <typename T>
void unpack_row(const T* packed, int64_t n, int64_t k, float* row);

// One weight of a product: out[m, n] (+)= sum over k of x[m, k] * weight[n, k], + bias[n].
struct Product {
  const void* weight;  // packed, of the element type named in multiply()
  const float* bias;   // [n], or null
  float* out;          // [rows, n] contiguous
  int64_t n;
  bool add;  // onto what `out` holds
};

// x [rows, k] fp32 against one or more weights, in parallel over their rows. fp32 sums.
template <typename T>  // float or BFloat16
void multiply(const float* x, int64_t rows, int64_t k, std::span<const Product> products);

}  // namespace hexad::native::cpu
