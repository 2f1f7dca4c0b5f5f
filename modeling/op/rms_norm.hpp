// Root-mean-square normalisation over the last dimension.
#pragma once
#include <array>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// x [..., D], weight [D] -> x / sqrt(mean(x^2) + eps) * weight in the weight's dtype (x may be
// fp32 beside a 16-bit weight); statistics in fp32. Differentiable in both.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

// hidden + delta in the dtype of hidden, [T, D]: the stream of hidden states takes what a part of a block adds.
at::Tensor residual_add(const at::Tensor& hidden, const at::Tensor& delta);
// The sum and its norm: {residual_add(hidden, delta), rms_norm(of that)}, in one pass on a GPU, as is the sum of the
// gradients of both. An undefined delta adds nothing.
std::array<at::Tensor, 2> add_rms_norm(const at::Tensor& hidden, const at::Tensor& delta, const at::Tensor& weight,
                                       double eps);

}  // namespace hexad::modeling
