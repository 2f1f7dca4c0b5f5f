// Losses that spread tokens over experts, as Megatron-Core computes them (moe_utils.py:
// switch_load_balancing_loss_func, z_loss_func, compute_routing_scores_for_aux_loss), and the bias that spreads them
// without a loss.
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/moe/topk_routing.hpp"

namespace hexad::modeling {

// What the balancing losses look at: normalised scores fp32 [T, E], and their own top-k (bool [T, E]), which knows
// neither expert bias nor groups. Rows of padding (padding: bool [T], true = padding; undefined: none) are zero.
struct BalancingScores {
  at::Tensor scores, map;
};
BalancingScores balancing_scores(const at::Tensor& logits, int64_t topk, ScoreFunction score,
                                 const at::Tensor& padding = {});

// E * coefficient / (k * T^2) * sum_e (sum_t scores[t, e]) * tokens_per_expert[e]. scores are of the local tokens, the
// counts and total_tokens (T, a scalar tensor; none is 0) of whatever they are balanced over. num_experts is E also
// when the columns are (sequence, expert) pairs.
at::Tensor switch_loss(const at::Tensor& scores, const at::Tensor& tokens_per_expert, const at::Tensor& total_tokens,
                       int64_t topk, int64_t num_experts, double coefficient);

// The same for each sequence by itself, and of these the mean with the tokens of each as its weight: coefficient * E /
// (k * T) * sum_s 1 / T_s * sum_e scores[s, e] * counts[s, e]. scores and counts [S, E] are sums over a sequence's
// tokens; without padding and with sequences of one length, Megatron's seq_aux_loss.
at::Tensor sequences_loss(const at::Tensor& scores, const at::Tensor& counts, int64_t topk, double coefficient);

// x [T, E] -> [num_sequences, E]. sequences: int64 [T].
at::Tensor sum_of_sequences(const at::Tensor& x, const at::Tensor& sequences, int64_t num_sequences);

// coefficient / total_tokens * sum over tokens that are no padding of logsumexp(logits)^2.
at::Tensor z_loss(const at::Tensor& logits, double coefficient, const at::Tensor& total_tokens,
                  const at::Tensor& padding = {});

// Returns `activation`; its backward pass gives `loss` the gradient `scale`, as if scale * loss were part of the loss.
at::Tensor attach_loss(const at::Tensor& activation, const at::Tensor& loss, double scale);

// The expert bias after a step (DeepSeek-V3, arXiv 2412.19437; Megatron-Core's get_updated_expert_bias):
// bias + rate * sign(mean count - count), fp32 [..., E]. tokens_per_expert [..., E]: tokens of the whole global batch,
// summed over ranks.
at::Tensor updated_expert_bias(const at::Tensor& bias, const at::Tensor& tokens_per_expert, double rate);

}  // namespace hexad::modeling
