// Rows of a tensor by their numbers.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// x [N, ...], rows int64 [M] on x's device, each below N and as often as wanted -> [M, ...]. Differentiable in x.
at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& rows);

}  // namespace hexad::modeling
