// The products of many experts at once: rows sorted by expert, weights of every expert, and where each expert's rows
// end, on the device. Outside of autograd.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// The weights of all experts as [E, out, in]; with `second`, [E, 2 * out, in] whose rows are those of the first, then
// of the second. A view where memory allows: parts of an expert adjacent, experts at one distance. Otherwise a copy.
at::Tensor stacked(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second = {});

// One CUTLASS kernel each through at::_grouped_mm, on Hopper in bf16 (elsewhere ATen loops, and waits for the counts).
// What it asks for: weights and rows whose in and out are multiples of 8, on 16 bytes; groups may be empty, and of any
// length. fits_grouped_products: will it be the kernel?
bool fits_grouped_products(const at::Tensor& rows, const std::vector<at::Tensor>& weights);

// x [N, in], weights [E, out, in], ends int32 [E] -> [N, out]: each row times its expert's weight.
at::Tensor grouped_product(const at::Tensor& x, const at::Tensor& weights, const at::Tensor& ends);
// grad [N, out] -> [N, in].
at::Tensor grouped_input_gradient(const at::Tensor& grad, const at::Tensor& weights, const at::Tensor& ends);

// The gradients of weights of all experts, from grad [N, columns] and x [N, in]: the columns belong to the lists of
// `weights` one after the other, as many as their weights have rows. Those with sums in grad() are added to these
// (where memory allows in the epilogue of the product, whose fp32 is never rounded; otherwise after a rounding to the
// type of x) and undefined in the result; the others are returned, zero for experts without rows. One list after the
// other.
std::vector<at::Tensor> grouped_weight_gradients(const at::Tensor& grad, const at::Tensor& x,
                                                 const std::vector<std::vector<at::Tensor>>& weights,
                                                 const at::Tensor& ends);

}  // namespace hexad::modeling
