// Bounds on the tokens of an expert, as in Megatron-Core (moe_utils.py: get_capacity, apply_router_token_dropping,
// pad_routing_map).
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "modeling/moe/topk_routing.hpp"

namespace hexad::modeling {

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
