// The experts' MLPs over tokens that are sorted by expert, one expert at a time: the way of CPUs, of types without
// grouped products, and what those are measured against (grouped_experts.hpp).
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/placement.hpp"

namespace hexad::modeling {

class Fp8Casts;

// Weights of the experts [local.begin, local.end) that this rank holds, one entry each: gate and up [F, H], down [H,
// F]. With expert tensor parallelism F is this rank's part of the width, and the outputs are summands.
struct ExpertWeights {
  Range local;
  std::vector<at::Tensor> gate, up, down;
  bool fp8 = false;                   // grouped products in FP8 where sizes fit (fits_fp8_experts)
  Fp8Casts* fp8_casts = nullptr;      // LinearOptions::fp8_casts
  bool recompute_activation = false;  // Recompute::expert_activation (op/checkpoint.hpp); grouped ones always do
};

// down(silu(gate x) * up x) of each row by its expert: rows [N, H], the first counts[0] of the first local expert and
// so on (counts.size() == local.size(), sum N) -> [N, H]. row_probs [N], if defined, multiplies the activation, so that
// the output is weighted and un-permuting is a plain sum. One GEMM for each expert that has tokens; experts without
// tokens get no gradient. row_tile as in apply_linear. Throws Error when the counts do not fit.
at::Tensor grouped_mlp(const at::Tensor& rows, const std::vector<int64_t>& counts, const ExpertWeights& weights,
                       const at::Tensor& row_probs = {}, int64_t row_tile = 0);

}  // namespace hexad::modeling
