// FP8 operands of matrix products, scaled by tensor from the values at hand ("current scaling", the recipe tensorwise
// of Megatron-Core and Transformer Engine): value = round(x * q) with q = (largest FP8 number) / max |x|. Nothing here
// waits for a GPU. On a CPU the same quantisation runs in plain ATen, bit for bit, and products are those of fp32.
//
// All-zero tensors have q = 1. Where max |x| is infinite or not a number, so are the products: a step is skipped for it
// as it would be without FP8.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// How linears compute. e4m3 (3 bits of mantissa) everywhere, or in hybrid e5m2 (2 bits, a larger range) for gradients
// of outputs.
enum class Fp8 { off, e4m3, hybrid };

constexpr at::ScalarType fp8_value_type(Fp8) { return at::kFloat8_e4m3fn; }
constexpr at::ScalarType fp8_gradient_type(Fp8 fp8) {
  return fp8 == Fp8::hybrid ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn;
}

// Sizes that are contracted over, and widths of results, are multiples of this.
constexpr int64_t kFp8Multiple = 16;

struct Fp8Range {
  at::Tensor largest;  // fp32 [1]: max |x|
  at::Tensor inverse;  // fp32 [1]: x = value * inverse
};

// Which layouts: Hopper multiplies FP8 matrices only where both lie along what is contracted.
enum class Fp8Copies { rows, columns, both };

// x [R, C] in FP8, R and C as to_fp8 says.
struct Fp8Tensor {
  at::Tensor rows;     // [R, C], contiguous, or undefined
  at::Tensor columns;  // the transposed copy [C, R rounded up to a multiple of 16], the rest zeros, or undefined
  Fp8Range range;
};

// Parts of one type, fp32 or 16-bit, with one range: below each other (dim 0: [R_i, C] with R_i multiples of 16) or
// side by side (dim 1: [R, C_i]); R > 0, columns are multiples of 16. On a GPU parts that lie so in memory are read as
// one. One pass finds the range, unless `known` has it from before, and one writes the copies.
Fp8Tensor to_fp8(const std::vector<at::Tensor>& parts, int64_t dim, at::ScalarType type, Fp8Copies copies,
                 const Fp8Range& known = {});

// An operand as it is contracted: values [M, K], contiguous along K.
struct Fp8Matrix {
  at::Tensor values, inverse;
};
inline Fp8Matrix by_rows(const Fp8Tensor& x) { return {x.rows, x.range.inverse}; }
inline Fp8Matrix by_columns(const Fp8Tensor& x) { return {x.columns, x.range.inverse}; }

// a [M, K] times b [N, K] transposed, plus bias [N] if that is defined -> [M, N] of `type`; N and K are multiples of
// 16. Sums are fp32; `fast` lets the tensor cores keep fewer bits of partial sums, as is usual forward.
at::Tensor fp8_product(const Fp8Matrix& a, const Fp8Matrix& b, const at::Tensor& bias, at::ScalarType type, bool fast);

// sum += g x^T of g [N, T] and x [K, T]: transposed copies; sum as accumulate_product's (linear.hpp).
void accumulate_fp8_product(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x);

}  // namespace hexad::modeling
