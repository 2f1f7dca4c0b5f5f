// Which experts a token goes to, and with what weights. Formulas and precision are those of Megatron-Core's
// moe_utils.py (topk_routing_with_score_function, group_limited_topk).
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lib/model/family/topk_options.hpp"

namespace hexad::modeling {

using model::check_topk;
using model::ScoreFunction;
using model::TopkOptions;

// The decision for T local tokens.
struct Routing {
  at::Tensor probs;    // [T, k] in the dtype of the logits; differentiable
  at::Tensor experts;  // int64 [T, k], distinct in a row
  at::Tensor kept;     // bool [T, E]: what capacity leaves (and pads: probability 0); undefined: everything selected
};

// The same as Megatron has it: probs [T, E] is 0 where map (bool [T, E]) is false.
struct RoutingMatrix {
  at::Tensor probs, map;
};
RoutingMatrix routing_matrix(const Routing& routing, int64_t num_experts);

// logits [T, E]. expert_bias: fp32 [E] or undefined; with sigmoid and sqrt_softplus it is added to the scores for the
// selection only. selected: int64 [T, k] or undefined; experts that were chosen elsewhere (a replayed rollout), whose
// weights are computed here; a token of -1 throughout is routed here. Scores are formed in fp32.
Routing topk_routing(const at::Tensor& logits, const TopkOptions& options, const at::Tensor& expert_bias = {},
                     const at::Tensor& selected = {});

// softmax over the experts, or the other scores divided by their sum: fp32 [T, E].
at::Tensor normalized_scores(const at::Tensor& logits, ScoreFunction score);

// ceil(tokens / experts * factor), at least min_capacity. `tokens` counts a token once for each expert that it goes to.
int64_t expert_capacity(int64_t tokens, int64_t experts, double factor, int64_t min_capacity = 0);

// Which tokens an expert keeps: the most probable ones, or those that come first.
enum class DropPolicy { probs, position };

// bool [T, E] for Routing::kept: at most `capacity` tokens an expert; with `pad` exactly so many (if there are), the
// free places taken by other tokens with probability 0.
at::Tensor capacity_map(const RoutingMatrix& routing, int64_t capacity, DropPolicy policy, bool pad);

// bool [T, E] -> the same with the first tokens that an expert has not turned on until its count is a multiple (or no
// token is left).
at::Tensor pad_routing_map(const at::Tensor& map, int64_t multiple);

}  // namespace hexad::modeling
