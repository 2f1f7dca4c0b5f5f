// The feed-forward part of a mixture-of-experts block.
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/moe/experts.hpp"
#include "modeling/moe/router.hpp"
#include "modeling/op/checkpoint.hpp"
#include "modeling/parallel/tensor_parallel.hpp"

namespace hexad::modeling {

// Weights of one layer, [out, in]; undefined when the family has none.
struct MoeWeights {
  at::Tensor router;                               // [E, H]
  at::Tensor expert_bias;                          // [E]: selection only, not trained by gradients
  ExpertWeights experts;                           // those of this rank
  at::Tensor shared_gate, shared_up, shared_down;  // the experts that every token visits, as one MLP
  at::Tensor shared_scale;                         // [1, H]: sigmoid(x . shared_scale) multiplies the shared output
};

// Runs routed tokens through their experts, wherever these are. tokens [T, H] -> [T, H], in the dtype of tokens.
class ExpertDispatcher {
 public:
  virtual ~ExpertDispatcher() = default;
  virtual at::Tensor run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                         const ExpertWeights& weights) = 0;
};

// What the experts of weights.local contribute: the whole result when they are all, a summand otherwise.
at::Tensor run_local_experts(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                             const ExpertWeights& weights, int64_t row_tile = 0);

// How one layer is run in training; the default routes without losses and counters, and runs the local experts.
struct MoeRun {
  Router* router = nullptr;                // its own settings, bias and state; null: the model's
  ExpertDispatcher* dispatcher = nullptr;  // null: run_local_experts
  at::Tensor padding{};                    // bool [T] or undefined, for the router
  at::Tensor selected{};                   // int64 [T, k] or undefined: replayed experts
  Recompute recompute{};                   // moe, expert_activation and shared_experts
};

// x [T, H] -> [T, H]. The router computes in fp32, whatever the dtype of its weight. `tp` shares the shared experts,
// whose weights are then this rank's parts; x is this rank's tokens with sequence parallelism, and routing wants that.
at::Tensor moe_forward(const TopkOptions& options, const MoeWeights& weights, const at::Tensor& x,
                       const MoeRun& run = {}, int64_t row_tile = 0, const TensorParallel& tp = {});

}  // namespace hexad::modeling
