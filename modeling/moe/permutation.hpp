// Tokens sorted by expert, and back (Megatron-Core's permute, unpermute and sort_chunks_by_idxs).
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/moe/topk_routing.hpp"
#include "modeling/parallel/placement.hpp"

namespace hexad::modeling {

// N rows, one for each (token, expert) pair, by expert and then by token.
struct Permutation {
  int64_t num_tokens = 0;       // T
  std::vector<int64_t> counts;  // rows of each expert, on the host
  at::Tensor tokens;            // int64 [N]: the token of each row
  at::Tensor slots;             // int64 [N]: where the row's probability lies among the flattened ones
  // int64 [T, k]: the row of each slot. Only where every token has exactly k rows: both directions are then gathers,
  // without atomics. Undefined otherwise.
  at::Tensor rows;
};

// Slots index routing.probs [T, k], or, when routing.kept is defined, routing_matrix(routing).probs [T, E].
// On CUDA the counts are one synchronisation with the host.
Permutation sort_by_expert(const Routing& routing, int64_t num_experts);
Permutation sort_by_expert(const at::Tensor& map);  // bool [T, E]; slots index probs [T, E]

// The rows of experts [range.begin, range.end) alone; counts are those of the range.
Permutation of_experts(const Permutation& permutation, const Range& range);

// [T, H] -> [N, H]. Differentiable.
at::Tensor permute(const at::Tensor& tokens, const Permutation& permutation);
// probs of any shape -> [N]. Differentiable.
at::Tensor permute_probs(const at::Tensor& probs, const Permutation& permutation);
// The probabilities of a routing: routing.probs, or its matrix where capacity has left gaps.
at::Tensor permute_probs(const Routing& routing, int64_t num_experts, const Permutation& permutation);
// [N, H] -> [T, H], the sum of a token's rows, each multiplied by its row_probs [N] if those are defined. Same dtype;
// summed in fp32. Differentiable.
at::Tensor unpermute(const at::Tensor& rows, const Permutation& permutation, const at::Tensor& row_probs = {});

// Cuts dimension 0 into chunks of `sizes` and joins them in the order of `order`. Differentiable.
at::Tensor sort_chunks(const at::Tensor& x, const std::vector<int64_t>& sizes, const std::vector<int64_t>& order);

}  // namespace hexad::modeling
