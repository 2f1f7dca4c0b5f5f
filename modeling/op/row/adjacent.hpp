// Tensors that lie side by side in memory, so that one operator can take them all: the weights of projections with the
// same input, what these make, and the gradients of both.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// The tensor that covers `parts` in their order, outside of autograd: rows [sum of N_i, ...] of contiguous parts
// [N_i, ...] (dim 0), or columns [T, sum of N_i] of parts [T, N_i] or [T, H_i, D] with one distance between rows (dim
// 1). Undefined when they do not lie so.
at::Tensor adjacent(const std::vector<at::Tensor>& parts, int64_t dim);

// The other way: columns [T, widths[i]] of x [T, sum of widths], outside of autograd (a Function may return them).
std::vector<at::Tensor> side_by_side(const at::Tensor& x, const std::vector<int64_t>& widths);

// The tensor [n, ...] over n equal contiguous parts that lie at one distance from each other, in ascending order,
// outside of autograd. Undefined when they do not.
at::Tensor at_one_distance(const std::vector<at::Tensor>& parts);

}  // namespace hexad::modeling
