// Dispatchers for experts that are distributed over ranks: rank r of the group holds the experts of expert-parallel
// rank r / tensor_ranks, and of each the part r % tensor_ranks of its width (expert tensor parallelism). Every rank
// brings its own tokens, as many as it has (none included); all call run() together, forward and backward. Dropless, or
// what Routing::kept leaves. Token counts are exchanged first, and the host waits for them: collectives want sizes.
#pragma once
#include "modeling/moe/moe_layer.hpp"

namespace hexad::modeling {

struct ExpertGroup {
  Group group;
  int64_t tensor_ranks = 1;

  int64_t expert_ranks() const { return group.size() / tensor_ranks; }
  // The experts that this rank holds (a part of). Throws Error when they do not divide over the ranks.
  Range local(int64_t num_experts) const;
};

// Each token travels to the ranks of its experts alone, and its results travel back (Megatron-Core's
// MoEAlltoAllTokenDispatcher, with the gather over expert-tensor-parallel ranks folded into the one exchange).
class AllToAllDispatcher : public ExpertDispatcher {
 public:
  explicit AllToAllDispatcher(const ExpertGroup& ranks) : ranks_(ranks) {}
  at::Tensor run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts, const ExpertWeights& weights,
                 const Meanwhile& meanwhile = {}) override;

 private:
  ExpertGroup ranks_;
};

// Every rank sees all tokens, and their results are reduce-scattered (MoEAllGatherTokenDispatcher): for small groups.
// Nothing is overlapped: `meanwhile` comes first.
class AllGatherDispatcher : public ExpertDispatcher {
 public:
  explicit AllGatherDispatcher(const ExpertGroup& ranks) : ranks_(ranks) {}
  at::Tensor run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts, const ExpertWeights& weights,
                 const Meanwhile& meanwhile = {}) override;

 private:
  ExpertGroup ranks_;
};

// Every rank of the group has the same tokens, routed alike, and its part of the width of every expert (tensor
// parallelism without sequence parallelism): nothing but the sum of the results travels.
class EqualTokensDispatcher : public ExpertDispatcher {
 public:
  explicit EqualTokensDispatcher(const Group& group) : group_(group) {}
  at::Tensor run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts, const ExpertWeights& weights,
                 const Meanwhile& meanwhile = {}) override;

 private:
  Group group_;
};

}  // namespace hexad::modeling
