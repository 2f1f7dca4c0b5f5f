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
  int64_t num_tokens = 0;  // T
  at::Tensor ends;         // int32 [E]: where the rows of each expert end
  at::Tensor tokens;       // int64 [N]: the token of each row
  at::Tensor slots;        // int64 [N]: where the row's probability lies among the flattened ones
  // int64 [T, k]: the row of each slot. Only where every token has exactly k rows: both directions are then gathers,
  // without atomics. Undefined otherwise.
  at::Tensor rows;

  at::Tensor counts() const;                    // int64 [E]: rows of each expert
  std::vector<int64_t> counts_on_host() const;  // waits for a GPU
};

// Slots index routing.probs [T, k], or, when routing.kept is defined, routing_matrix(routing).probs [T, E]. What is
// kept has as many rows as it has, which the host waits for on a GPU; without it nothing waits.
Permutation sort_by_expert(const Routing& routing, int64_t num_experts);
Permutation sort_by_expert(const at::Tensor& map);  // bool [T, E]; slots index probs [T, E]

// The rows of experts [range.begin, range.end) alone. Waits for a GPU, unless the range is all of them.
Permutation of_experts(const Permutation& permutation, const Range& range);

// N rows that lie in order already, the slots too.
Permutation rows_in_order(int64_t num_rows, const at::Tensor& ends);

// [T, H] -> [N, H]. Differentiable.
at::Tensor permute(const at::Tensor& tokens, const Permutation& permutation);
// probs of any shape -> [N]. Differentiable.
at::Tensor permute_probs(const at::Tensor& probs, const Permutation& permutation);
// What the slots of sort_by_expert(routing) index: routing.probs, or its matrix where capacity has left gaps.
at::Tensor all_probs(const Routing& routing, int64_t num_experts);
// [N, H] -> [T, H], the sum of a token's rows, each multiplied by its row_probs [N] if those are defined. Same dtype;
// summed in fp32. Differentiable.
at::Tensor unpermute(const at::Tensor& rows, const Permutation& permutation, const at::Tensor& row_probs = {});

// The two directions outside of autograd, where `rows` is defined: a copy of a token for each of its rows, and the sum
// of its rows in fp32, in the order of its slots.
at::Tensor spread_rows(const at::Tensor& x, const at::Tensor& tokens, const at::Tensor& rows);
at::Tensor sum_rows(const at::Tensor& x, const at::Tensor& rows);

}  // namespace hexad::modeling
