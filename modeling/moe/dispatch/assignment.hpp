// Two ways to choose experts that balance by themselves, without a loss.
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/moe/topk_routing.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// exp(logits) [T, E] scaled by rows and columns towards equal sums (Sinkhorn, as in Megatron-Core): iterated until the
// column factors move by less than `tolerance` on average. fp32, not differentiable.
at::Tensor sinkhorn(const at::Tensor& logits, double tolerance = 1e-4);

// Experts by Sinkhorn while training and by score otherwise; the weights are the sigmoid (topk 1) or the softmax over
// all experts.
Routing sinkhorn_routing(const at::Tensor& logits, int64_t topk, bool training);

// Quantile balancing (Megatron-Core's qb_dual_update): each token takes the topk best of logits - beta. `quantile`
// fp32 [E] is the beta that would have given each expert its share of these tokens.
struct QuantileSelection {
  at::Tensor experts;   // int64 [T, k]
  at::Tensor quantile;  // fp32 [E]
};
// beta: fp32 [E]. topk is less than E. The share is that of the tokens of all ranks of `group`, which hold equally
// many.
QuantileSelection quantile_selection(const at::Tensor& logits, int64_t topk, const at::Tensor& beta,
                                     const Group& group = {});

}  // namespace hexad::modeling
