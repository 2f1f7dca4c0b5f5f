// The feed-forward part of a mixture-of-experts block.
#pragma once
#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>

#include "modeling/moe/experts.hpp"
#include "modeling/moe/dispatch/permutation.hpp"
#include "modeling/moe/router.hpp"
#include "modeling/op/checkpoint.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

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
  // `meanwhile`, if there is one, is called once, while tokens travel if they do; so does the backward pass of what it
  // computed.
  using Meanwhile = std::function<void()>;
  virtual at::Tensor run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                         const ExpertWeights& weights, const Meanwhile& meanwhile = {}) = 0;
};

// The tokens that `order` has sorted over the experts of `weights`, in one product each where a device has such
// (grouped_experts.hpp), and an expert at a time elsewhere, or with row_tile. Tokens [T, H] -> [T, H]; probs of any
// shape.
at::Tensor run_experts(const at::Tensor& tokens, const at::Tensor& probs, const Permutation& order,
                       const ExpertWeights& weights, int64_t row_tile = 0);

// What the experts of weights.local contribute: the whole result when they are all, a summand otherwise.
at::Tensor run_local_experts(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                             const ExpertWeights& weights, int64_t row_tile = 0);

// How one layer is run in training; the default routes without losses and counters, and runs the local experts.
struct MoeRun {
  Router* router = nullptr;                // its own settings and state; null: the model's, without state
  ExpertDispatcher* dispatcher = nullptr;  // null: run_local_experts
  // For the router, of these tokens: padding bool [T] or undefined, selected int64 [T, k] or undefined ...
  RouteOptions route{};
  // Computes the shared experts while tokens travel to theirs.
  bool overlap_shared = false;
  // Called with the experts that were chosen, int64 [T, k].
  std::function<void(const at::Tensor& experts)> chosen{};
  // What the logits are computed in; absent: the type of the tokens.
  std::optional<at::ScalarType> router_dtype = at::kFloat;
  bool fp8_experts = false;       // see ExpertWeights
  Fp8Casts* fp8_casts = nullptr;  // likewise
  Recompute recompute{};          // moe, expert_activation and shared_experts
};

// x [T, H] -> [T, H]. `tp` shares the shared experts, whose weights are then this rank's parts; x is this rank's tokens
// with sequence parallelism, and routing wants that.
at::Tensor moe_forward(const TopkOptions& options, const MoeWeights& weights, const at::Tensor& x,
                       const MoeRun& run = {}, int64_t row_tile = 0, const TensorParallel& tp = {});

}  // namespace hexad::modeling
