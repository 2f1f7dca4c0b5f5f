// FP8 operands of matrix products, scaled from the values at hand: value = round(x * q) with q = (largest FP8 number) /
// max |x|, of the whole tensor here ("current scaling", the recipe tensorwise of Megatron-Core and Transformer Engine),
// of strips and blocks in fp8_blocks.hpp (the recipe blockwise). Nothing here waits for a GPU. On a CPU the same
// quantisation runs in plain ATen, bit for bit, and products are those of fp32.
//
// All-zero tensors have q = 1. Where max |x| is infinite or not a number, so are the products: a step is skipped for it
// as it would be without FP8.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// How linears compute: format and recipe. e4m3 (3 bits of mantissa) everywhere, or in hybrid e5m2 (2 bits, a larger
// range) for gradients of outputs.
enum class Fp8 { off, e4m3, hybrid, blockwise_e4m3, blockwise_hybrid };

constexpr bool is_blockwise(Fp8 fp8) { return fp8 == Fp8::blockwise_e4m3 || fp8 == Fp8::blockwise_hybrid; }
constexpr at::ScalarType fp8_value_type(Fp8) { return at::kFloat8_e4m3fn; }
constexpr at::ScalarType fp8_gradient_type(Fp8 fp8) {
  return fp8 == Fp8::hybrid || fp8 == Fp8::blockwise_hybrid ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn;
}

// What shares a scale: the tensor, 128 elements of a row, or 128 x 128.
enum class Fp8Scaling { tensor, strips, blocks };

// Sizes that are contracted over, and widths of results, are multiples of this.
constexpr int64_t kFp8Multiple = 16;

// q of values whose largest magnitudes are `largest`, fp32 of any shape, on a CPU.
at::Tensor fp8_factor(const at::Tensor& largest, at::ScalarType type);

struct Fp8Range {
  at::Tensor largest;  // fp32 [1]: max |x|
  at::Tensor inverse;  // fp32 [1]: x = value * inverse
};

// Which layouts: Hopper multiplies FP8 matrices only where both lie along what is contracted.
enum class Fp8Copies { rows, columns, both };

// x [R, C] in FP8, R and C as to_fp8 says; in strips and blocks as fp8_blocks.hpp says.
struct Fp8Tensor {
  at::Tensor rows;     // [R, C], contiguous, or undefined
  at::Tensor columns;  // the transposed copy [C, R rounded up to a multiple of 16], the rest zeros, or undefined
  Fp8Range range;      // of the tensor
  Fp8Scaling scaling = Fp8Scaling::tensor;
  at::Tensor row_inverse, column_inverse;  // of strips and blocks
  int64_t zero_rows = 0;                   // that pad the rows
};

// Parts of one type, fp32 or 16-bit, with one range: below each other (dim 0: [R_i, C] with R_i multiples of 16) or
// side by side (dim 1: [R, C_i]); R > 0, columns are multiples of 16. On a GPU parts that lie so in memory are read as
// one. One pass finds the range, unless `known` has it from before, and one writes the copies.
Fp8Tensor to_fp8(const std::vector<at::Tensor>& parts, int64_t dim, at::ScalarType type, Fp8Copies copies,
                 const Fp8Range& known = {});

// An operand as it is contracted: values [M, K], contiguous along K. With strips or blocks K is a multiple of 128; the
// last `zero_rows` of M are padding.
struct Fp8Matrix {
  at::Tensor values, inverse;
  Fp8Scaling scaling = Fp8Scaling::tensor;
  int64_t zero_rows = 0;
};
inline Fp8Matrix by_rows(const Fp8Tensor& x) {
  return {x.rows, x.scaling == Fp8Scaling::tensor ? x.range.inverse : x.row_inverse, x.scaling, x.zero_rows};
}
inline Fp8Matrix by_columns(const Fp8Tensor& x) {
  return {x.columns, x.scaling == Fp8Scaling::tensor ? x.range.inverse : x.column_inverse, x.scaling, 0};
}
// Rows [begin, begin + count) of a matrix that is no matrix of blocks.
Fp8Matrix rows_of(const Fp8Matrix& x, int64_t begin, int64_t count);

// a [M, K] times b [N, K] transposed, plus bias [N] if that is defined -> [M without its padding, N] of `type`; N and K
// are multiples of 16. Both are scaled by tensor, or one has strips and the other strips or blocks. Sums are fp32;
// `fast` lets the tensor cores keep fewer bits of partial sums, as is usual forward; it is for scales by tensor alone.
at::Tensor fp8_product(const Fp8Matrix& a, const Fp8Matrix& b, const at::Tensor& bias, at::ScalarType type, bool fast);

// sum += g x^T of g [N, T] and x [K, T]: transposed copies; sum as accumulate_product's (linear.hpp).
void accumulate_fp8_product(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x);

}  // namespace hexad::modeling
