// What tokens go through on a GPU on their way to experts and back (modeling/moe), over the kernels of this folder. As
// in operators.hpp: on the current stream, waiting for nothing; no gradients; no_cuda.cpp stands for them elsewhere.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling::cuda {

// Of experts int64 [T, k]: see Permutation (moe/permutation.hpp).
struct ExpertOrder {
  at::Tensor ends, tokens, slots, rows;
};
bool fits_expert_sort(const at::Tensor& experts, int64_t num_experts);
ExpertOrder sort_by_expert(const at::Tensor& experts, int64_t num_experts);

// Rows of x [n, dim] can travel by the next two.
bool fits_expert_rows(const at::Tensor& x);
// x [T, dim], rows int64 [T, k] -> [T * k, dim]: row rows[t, j] is x[t].
at::Tensor spread_rows(const at::Tensor& x, const at::Tensor& rows);
// x [T * k, dim] -> [T, dim]: the sum over j of the rows rows[t, j], in fp32.
at::Tensor sum_rows(const at::Tensor& x, const at::Tensor& rows);

// See weighted_swiglu of moe/grouped_experts.hpp; probs fp32.
at::Tensor weighted_swiglu(const at::Tensor& gate_up, const at::Tensor& probs, const at::Tensor& slots);
struct WeightedSwigluGradient {
  at::Tensor gate_up, probs, activation;
};
WeightedSwigluGradient weighted_swiglu_gradient(const at::Tensor& grad, const at::Tensor& gate_up,
                                                const at::Tensor& probs, const at::Tensor& slots);

// moe/fp8_experts.hpp. x [N, K] into values [N, K] and inverse [N]; N > 0.
void fp8_cast_rows(const at::Tensor& x, const at::Tensor& values, const at::Tensor& inverse);
// weights [E, out, in], whose largest magnitudes are fp32 [E], into values [E, out, in], or turned [E, in, out].
void fp8_cast_stack(const at::Tensor& weights, const at::Tensor& largest, const at::Tensor& values,
                    const at::Tensor& inverse, bool turned);

// sums[e] += grad^T x of the rows of expert e: grad [N, out], whose rows may have a stride, and x [N, in], both bf16.
// The fp32 sums are [out, in], or [parts, out / parts, in] whose parts lie anywhere. False, and nothing done, when they
// do not lie at one distance from each other, or sizes are not multiples of 8.
bool add_grouped_gradient(const std::vector<at::Tensor>& sums, const at::Tensor& grad, const at::Tensor& x,
                          const at::Tensor& ends);
// sums[e] += products[e] [out, in] for each expert that has rows; otherwise the same.
bool add_products(const std::vector<at::Tensor>& sums, const at::Tensor& products, const at::Tensor& ends);

}  // namespace hexad::modeling::cuda
