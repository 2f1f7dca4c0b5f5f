// Requests as workers receive them.
#pragma once
#include "core/rollout/generation.hpp"

namespace hexad::rollout {

// Throws Error(data) unless every prompt leaves room for a response.
void check_prompts(std::span<const Request> requests, const Sampling& sampling);

// Those that `share` lists, in its order: columns tokens i32 (token), group, seed and max_new_tokens i64 (sample).
data::Batch prompts_of(std::span<const Request> requests, std::span<const int64_t> share, const Sampling& sampling);

}  // namespace hexad::rollout
