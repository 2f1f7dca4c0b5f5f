// Softmax of fp32 logits by rows: the statistics that log-probs and entropy need, and the gradient of the logits.
#pragma once
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

}  // namespace hexad::modeling
