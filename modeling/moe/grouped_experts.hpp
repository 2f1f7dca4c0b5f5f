// All local experts at once, with the counts of their tokens on the device alone.
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/moe/experts.hpp"
#include "modeling/moe/dispatch/permutation.hpp"

namespace hexad::modeling {

// Are these products grouped ones on this device (grouped_products.hpp)? The loop of experts.hpp takes the others.
bool fits_grouped_experts(const at::Tensor& tokens, const ExpertWeights& weights);

// Are they in FP8 (fp8_experts.hpp)? The weights ask for it, H and F are multiples of 16, and the products are grouped
// ones or on a CPU, where the same is computed in plain ATen.
bool fits_fp8_experts(const at::Tensor& tokens, const ExpertWeights& weights);

// tokens [T, H], probs of any shape (undefined: 1), order with `rows`, over the experts of `weights` -> [T, H]: the sum
// of down(silu(gate x) * up x * prob) over a token's rows. The activation is weighted, so that the sum is plain, and
// rounded once. In FP8, where that fits, are the products forward and those of the inputs' gradients; the weights'
// gradients are not: they contract over the rows of an expert, which may be any number. For the backward pass are kept:
// tokens, probs, and gate x and up x; rows and activations are made again. An expert without rows gets a gradient of
// zero, or nothing is added to its sum.
at::Tensor grouped_experts(const at::Tensor& tokens, const at::Tensor& probs, const Permutation& order,
                           const ExpertWeights& weights);

// gate_up [N, 2 F], the gates first -> [N, F]: silu(gate) * up, times probs[slots] (flattened, fp32) if defined.
at::Tensor weighted_swiglu(const at::Tensor& gate_up, const at::Tensor& probs, const at::Tensor& slots);
// Of both inputs, and the activation once more. Every slot has one row.
struct WeightedSwigluGradient {
  at::Tensor gate_up, probs, activation;
};
WeightedSwigluGradient weighted_swiglu_gradient(const at::Tensor& grad, const at::Tensor& gate_up,
                                                const at::Tensor& probs, const at::Tensor& slots);

}  // namespace hexad::modeling
