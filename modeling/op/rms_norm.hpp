// Root-mean-square normalisation over the last dimension.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// x [..., D], weight [D] -> x / sqrt(mean(x^2) + eps) * weight in the weight's dtype (x may be
// fp32 beside a 16-bit weight); statistics in fp32. Differentiable in both.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace hexad::modeling
