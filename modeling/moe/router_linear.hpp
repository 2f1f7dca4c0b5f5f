// The product of a router.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// x [T, H] times weight [E, H] -> logits [T, E] of `dtype`, from factors and with sums of that type. row_tile as in
// apply_linear. For fp32 logits of 16-bit factors x itself is kept for the backward pass, and on a GPU multiplied as it
// is: products of two such factors are exact in fp32.
at::Tensor router_linear(const at::Tensor& x, const at::Tensor& weight, at::ScalarType dtype, int64_t row_tile = 0);

}  // namespace hexad::modeling
