#include "modeling/moe/moe_layer.hpp"

#include <ATen/Functions.h>

#include "modeling/moe/grouped_experts.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/op/swiglu.hpp"

namespace hexad::modeling {
namespace {

Routing route_tokens(const TopkOptions& options, const MoeWeights& weights, const at::Tensor& x, const MoeRun& run,
                     int64_t row_tile) {
  const at::ScalarType dtype = run.router_dtype.value_or(x.scalar_type());
  const at::Tensor logits = router_linear(x, weights.router, dtype, row_tile);
  if (!run.router) return topk_routing(logits, options, weights.expert_bias, run.route.selected);
  RouteOptions route = run.route;
  route.expert_bias = weights.expert_bias;
  return run.router->route(logits.unsqueeze(1), route);
}

at::Tensor shared_experts(const MoeWeights& w, const at::Tensor& x, int64_t row_tile, const TensorParallel& tp) {
  const std::vector<at::Tensor> parts =
      column_parallel(x, {w.shared_gate, w.shared_up}, {at::Tensor(), at::Tensor()}, tp, row_tile);
  const at::Tensor out = row_parallel(swiglu(parts[0], parts[1]), w.shared_down, {}, tp, row_tile);
  if (!w.shared_scale.defined()) return out;
  const auto sigmoid = [](const at::Tensor& logits) { return at::sigmoid(logits); };
  return by_row_tiles(apply_linear(x, w.shared_scale, {}, row_tile), row_tile, sigmoid) * out;
}

Tensors shared_tensors(const MoeWeights& w) { return {w.shared_gate, w.shared_up, w.shared_down, w.shared_scale}; }

Tensors all_tensors(const MoeWeights& w) {
  Tensors all = shared_tensors(w);
  all.push_back(w.router);
  for (const Tensors* part : {&w.experts.gate, &w.experts.up, &w.experts.down})
    all.insert(all.end(), part->begin(), part->end());
  return all;
}

at::Tensor shared_part(const MoeWeights& weights, const at::Tensor& x, bool recompute, int64_t row_tile,
                       const TensorParallel& tp) {
  if (!recompute) return shared_experts(weights, x, row_tile, tp);
  const auto run = [=](const Tensors& in) -> Tensors { return {shared_experts(weights, in[0], row_tile, tp)}; };
  return checkpoint(run, {x}, shared_tensors(weights))[0];
}

at::Tensor run_layer(const TopkOptions& options, const MoeWeights& weights, const at::Tensor& x, const MoeRun& run,
                     int64_t row_tile, const TensorParallel& tp) {
  const int64_t num_experts = weights.router.size(0);
  ExpertWeights experts = weights.experts;
  experts.recompute_activation = run.recompute.expert_activation;
  experts.fp8 = run.fp8_experts;
  experts.fp8_casts = run.fp8_casts;
  const Routing routing = route_tokens(options, weights, x, run, row_tile);
  if (run.chosen) run.chosen(routing.experts);
  at::Tensor shared;
  const auto run_shared = [&] { shared = shared_part(weights, x, run.recompute.shared_experts, row_tile, tp); };
  const bool has_shared = weights.shared_gate.defined();
  const ExpertDispatcher::Meanwhile meanwhile =
      has_shared && run.overlap_shared ? run_shared : ExpertDispatcher::Meanwhile();
  const at::Tensor routed = run.dispatcher ? run.dispatcher->run(x, routing, num_experts, experts, meanwhile)
                                           : run_local_experts(x, routing, num_experts, experts, row_tile);
  if (has_shared && !shared.defined()) run_shared();
  return has_shared ? routed + shared : routed;
}

}  // namespace

at::Tensor run_experts(const at::Tensor& tokens, const at::Tensor& probs, const Permutation& order,
                       const ExpertWeights& weights, int64_t row_tile) {
  if (row_tile > 0 || !(fits_grouped_experts(tokens, weights) || fits_fp8_experts(tokens, weights))) {
    const at::Tensor row_probs = permute_probs(probs, order);
    return unpermute(grouped_mlp(permute(tokens, order), order.counts_on_host(), weights, row_probs, row_tile), order);
  }
  if (order.rows.defined()) return grouped_experts(tokens, probs, order, weights);
  // Tokens with any number of rows: these are what goes in.
  const at::Tensor rows = permute(tokens, order);
  const Permutation in_order = rows_in_order(rows.size(0), order.ends);
  return unpermute(grouped_experts(rows, permute_probs(probs, order), in_order, weights), order);
}

at::Tensor run_local_experts(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                             const ExpertWeights& weights, int64_t row_tile) {
  const Permutation order = of_experts(sort_by_expert(routing, num_experts), weights.local);
  return run_experts(tokens, all_probs(routing, num_experts), order, weights, row_tile);
}

at::Tensor moe_forward(const TopkOptions& options, const MoeWeights& weights, const at::Tensor& x, const MoeRun& run,
                       int64_t row_tile, const TensorParallel& tp) {
  if (!run.recompute.moe) return run_layer(options, weights, x, run, row_tile, tp);
  const auto layer = [=](const Tensors& in) -> Tensors {
    return {run_layer(options, weights, in[0], run, row_tile, tp)};
  };
  return checkpoint(layer, {x}, all_tensors(weights))[0];
}

}  // namespace hexad::modeling
