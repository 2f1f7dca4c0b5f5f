// Rows of fp32 logits: the statistics that log-probs and entropy need of their softmax, the gradient of the logits, and
// top-k and top-p filtering with NeMo-RL's semantics (apply_top_k_top_p).
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// fp32 [N] each: log(sum(exp(logits))) and -sum(p log p). -inf logits count as absent.
struct SoftmaxStatistics {
  at::Tensor log_sum, entropy;
};
SoftmaxStatistics softmax_statistics(const at::Tensor& logits);

// Replaces logits [N, V] by the gradient of sum(grad_logprob * log p[target] + grad_entropy * H) with respect to them:
// grad_logprob * (1[j = target] - p_j) - grad_entropy * p_j * (log p_j + H). All fp32; targets int64 [N], negative:
// none of these columns.
void softmax_gradient_(at::Tensor& logits, const SoftmaxStatistics& statistics, const at::Tensor& grad_logprob,
                       const at::Tensor& grad_entropy, const at::Tensor& targets);

// Logits [N, V], already divided by the temperature -> bool [N, V], true where the token is kept. top_k (<= 0 or
// >= V: off) keeps the k largest and every tie of the k-th; then top_p (1: off) keeps, of the renormalised rest in
// ascending order, the tokens where the cumulative probability > 1 - top_p, and always the most probable one.
at::Tensor top_k_top_p_mask(const at::Tensor& logits, int64_t top_k, double top_p);

// Is there anything to filter?
inline bool filters_tokens(int64_t top_k, double top_p, int64_t vocab) {
  return (top_k > 0 && top_k < vocab) || top_p < 1.0;
}

}  // namespace hexad::modeling
