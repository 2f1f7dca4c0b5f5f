// Grouped products of experts in FP8: e4m3, with a scale for each row of what tokens make and one for each expert's
// weight, both from the values at hand. The rounding, and what is not finite, are those of op/fp8.hpp. Outside of
// autograd.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/op/fp8/casts.hpp"

namespace hexad::modeling {

struct Fp8Rows {
  at::Tensor values;   // e4m3 [N, K], contiguous
  at::Tensor inverse;  // fp32 [N]: x = value * inverse
};
// x [N, K] of fp32 or 16 bits, K a multiple of 16.
Fp8Rows to_fp8_rows(const at::Tensor& x);
// Row n is row tokens[n] of x; tokens and rows as in Permutation (permutation.hpp).
Fp8Rows spread_rows(const Fp8Rows& x, const at::Tensor& tokens, const at::Tensor& rows);

struct Fp8Stack {
  at::Tensor values;   // e4m3 [E, out, in], contiguous
  at::Tensor inverse;  // fp32 [E]
};
// weights [E, out, in] with any distance between experts, out and in multiples of 16; turned: [E, in, out]. `largest`:
// fp32 [E], the largest magnitude of each, where it is known.
Fp8Stack to_fp8_stack(const at::Tensor& weights, bool turned, const at::Tensor& largest = {});
// The same of stacked(first, second) (grouped_products.hpp), which stays in `casts` unless that is null.
Fp8Stack fp8_experts(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second, bool turned,
                     Fp8Casts* casts);

// Each row x [N, in] times the weight [out, in] of its expert, whose rows end at ends (int32 [E]), -> [N, out] of
// `type`: on a GPU bf16, by one CUTLASS kernel on Hopper (at::_scaled_grouped_mm). `fast` as in fp8_product.
at::Tensor fp8_grouped_product(const Fp8Rows& x, const Fp8Stack& weights, const at::Tensor& ends, at::ScalarType type,
                               bool fast);

}  // namespace hexad::modeling
