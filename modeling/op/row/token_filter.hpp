// Top-k and top-p filtering of logits, with NeMo-RL's semantics (apply_top_k_top_p).
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// fp32 logits [N, V], already divided by the temperature -> bool [N, V], true where the token is kept. top_k (<= 0 or
// >= V: off) keeps the k largest and every tie of the k-th; then top_p (1: off) keeps, of the renormalised rest in
// ascending order, the tokens where the cumulative probability > 1 - top_p, and always the most probable one.
at::Tensor top_k_top_p_mask(const at::Tensor& logits, int64_t top_k, double top_p);

// Is there anything to filter?
inline bool filters_tokens(int64_t top_k, double top_p, int64_t vocab) {
  return (top_k > 0 && top_k < vocab) || top_p < 1.0;
}

}  // namespace hexad::modeling
