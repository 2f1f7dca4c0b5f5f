// Tokens that the sampling filters (top_k, top_p) remove.
#pragma once
#include <cmath>
#include <span>

namespace hexad::algorithm {

// Backends give them a log-prob of -inf, prompts' tokens among them: 0, as NeMo-RL's mask_out_neg_inf_logprobs, since a
// mask of 0 does not undo an infinity.
inline void zero_removed(std::span<float> logprobs) {
  for (float& logprob : logprobs)
    if (logprob == -INFINITY) logprob = 0;
}

}  // namespace hexad::algorithm
