// Tensors that lie side by side in memory, so that one operator can take them all: the weights of projections with the
// same input, what these make, and the gradients of both; and tensors that begin where kernels want them.
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

// Kernels read and write words of 16 bytes.
inline bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// Contiguous and aligned; copied when not so. A weight in a buffer of many need not be.
inline at::Tensor aligned(const at::Tensor& x) {
  const at::Tensor whole = x.contiguous();
  return is_aligned(whole.const_data_ptr()) ? whole : whole.clone();
}

}  // namespace hexad::modeling
