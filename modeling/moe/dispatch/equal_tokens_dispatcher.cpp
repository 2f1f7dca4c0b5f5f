#include "modeling/moe/dispatch/expert_dispatcher.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

namespace hexad::modeling {

// A part of an expert's width sees a part of the gradient of its tokens, and of their probabilities.
at::Tensor EqualTokensDispatcher::run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                                      const ExpertWeights& weights, const Meanwhile& meanwhile) {
  if (meanwhile) meanwhile();
  Routing shared = routing;
  shared.probs = copy_to_ranks(routing.probs, group_);
  return sum_over_ranks(run_local_experts(copy_to_ranks(tokens, group_), shared, num_experts, weights), group_);
}

}  // namespace hexad::modeling
