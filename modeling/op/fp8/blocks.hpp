// FP8 operands with a scale for every 128 elements (the recipe blockwise: DeepSeek-V3, arXiv 2412.19437 section 3.3;
// Float8BlockScaling of Transformer Engine, here with fp32 scales). What tokens make, activations and gradients, is
// scaled by strips of 128 elements along what is contracted: 128 channels of a token where rows are, 128 tokens of a
// channel where columns are; weights by blocks of 128 x 128. The rounding is fp8.hpp's; what is not finite spoils the
// products of its own strip or block alone.
//
// Layouts are those that cuBLASLt takes on Hopper (VEC128_32F, BLK128x128_32F). What is contracted is padded with zeros
// to a multiple of 128:
//   strips [R, C]: rows [R16, C128] with row_inverse [C128 / 128, R16], columns [C, R128] with column_inverse
//     [R128 / 128, C]; R16: R rounded up to a multiple of 16, with zero_rows = R16 - R.
//   blocks [R, C]: rows [R, C128] with row_inverse [R128 / 128, n], n = C128 / 128 rounded up to a multiple of 4 (the
//     rest zeros), columns [C, R128] with column_inverse the other way round.
#pragma once
#include "modeling/op/fp8/fp8.hpp"

namespace hexad::modeling {

constexpr int64_t kFp8Block = 128;

// Parts side by side [R, C_i] of one type, fp32 or 16-bit; R > 0, the columns are multiples of 16. On a GPU one pass
// reads them and writes both copies; parts that do not lie side by side in memory are copied together first.
Fp8Tensor to_fp8_strips(const std::vector<at::Tensor>& parts, at::ScalarType type, Fp8Copies copies);

// Weights below each other [R_i, C], all sizes multiples of 16, in e4m3. Blocks may straddle weights: what lies apart
// gives the bits of what lies together.
Fp8Tensor to_fp8_blocks(const std::vector<at::Tensor>& weights, Fp8Copies copies);

// The fp32 values [M, K] of a matrix of strips or blocks.
at::Tensor without_scales(const Fp8Matrix& x);

}  // namespace hexad::modeling
