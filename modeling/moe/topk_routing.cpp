#include "modeling/moe/topk_routing.hpp"

#include <ATen/Functions.h>

#include <cmath>

namespace hexad::modeling {
namespace {

constexpr double kScoreEps = 1e-20;

// fp32, before any normalisation; softmax is not one of them.
at::Tensor raw_scores(const at::Tensor& logits, ScoreFunction score) {
  const at::Tensor wide = logits.to(at::kFloat);
  return score == ScoreFunction::sigmoid ? at::sigmoid(wide) : at::softplus(wide).sqrt();
}

// Scores of experts outside of the best groups become -inf.
at::Tensor limited_to_groups(const at::Tensor& scores, const TopkOptions& options) {
  const int64_t tokens = scores.size(0), experts = scores.size(1), per_group = experts / options.num_groups;
  const int64_t counted =
      options.group_score_experts > 0 ? options.group_score_experts : options.topk / options.group_topk;
  const at::Tensor grouped = scores.view({tokens, options.num_groups, per_group});
  const at::Tensor group_scores = std::get<0>(grouped.topk(std::min(counted, per_group), -1)).sum(-1);
  const at::Tensor best = std::get<1>(group_scores.topk(options.group_topk, -1));
  const at::Tensor outside = at::ones_like(group_scores, at::kBool).scatter(1, best, false);
  return grouped.masked_fill(outside.unsqueeze(-1), -INFINITY).view({tokens, experts});
}

at::Tensor select_experts(const at::Tensor& scores, const TopkOptions& options) {
  const at::Tensor values = scores.detach();
  return std::get<1>((options.num_groups > 0 ? limited_to_groups(values, options) : values).topk(options.topk, 1));
}

// Scores [T, E] -> int64 [T, k]: `selected`, but the best where that is -1 or undefined.
at::Tensor choose(const at::Tensor& scores, const TopkOptions& options, const at::Tensor& selected) {
  const at::Tensor own = select_experts(scores, options);
  return selected.defined() ? at::where(selected.lt(0), own, selected) : own;
}

}  // namespace

RoutingMatrix routing_matrix(const Routing& routing, int64_t num_experts) {
  const std::vector<int64_t> shape = {routing.probs.size(0), num_experts};
  const at::Tensor probs = at::zeros(shape, routing.probs.options()).scatter(1, routing.experts, routing.probs);
  if (routing.kept.defined()) return {probs * routing.kept, routing.kept};
  const at::Tensor map = at::zeros(shape, routing.probs.options().dtype(at::kBool)).scatter(1, routing.experts, true);
  return {probs, map};
}

Routing topk_routing(const at::Tensor& logits, const TopkOptions& options, const at::Tensor& expert_bias,
                     const at::Tensor& selected) {
  at::Tensor experts, weights;
  if (options.score == ScoreFunction::softmax) {
    const at::Tensor scores = options.pre_softmax ? at::softmax(logits, -1, at::kFloat) : logits;
    experts = choose(scores, options, selected);
    weights = scores.gather(1, experts);
    if (!options.pre_softmax) weights = at::softmax(weights, -1, at::kFloat);
  } else {
    const at::Tensor scores = raw_scores(logits, options.score);
    experts = choose(expert_bias.defined() ? scores + expert_bias.to(at::kFloat) : scores, options, selected);
    weights = scores.gather(1, experts);
    if (options.normalize && options.topk > 1) weights = weights / (weights.sum(-1, true) + kScoreEps);
  }
  if (options.scaling_factor != 1.0) weights = weights * options.scaling_factor;
  return {weights.to(logits.scalar_type()), experts, {}};
}

at::Tensor normalized_scores(const at::Tensor& logits, ScoreFunction score) {
  if (score == ScoreFunction::softmax) return at::softmax(logits, -1, at::kFloat);
  const at::Tensor scores = raw_scores(logits, score);
  return scores / (scores.sum(-1, true) + kScoreEps);
}

int64_t expert_capacity(int64_t tokens, int64_t experts, double factor, int64_t min_capacity) {
  return std::max(int64_t(std::ceil(double(tokens) / double(experts) * factor)), min_capacity);
}

at::Tensor capacity_map(const RoutingMatrix& routing, int64_t capacity, DropPolicy policy, bool pad) {
  at::Tensor room = at::ones_like(routing.map);
  if (capacity <= routing.map.size(0)) {
    // Stable sorting: among equal entries the first token wins.
    const at::Tensor rank = policy == DropPolicy::probs ? routing.probs.detach() : routing.map.to(at::kInt);
    const at::Tensor order = at::argsort(rank, /*stable=*/true, /*dim=*/0, /*descending=*/true);
    room = at::zeros_like(routing.map).scatter(0, order.slice(0, 0, capacity), true);
  }
  return pad ? room : routing.map.logical_and(room);
}

at::Tensor pad_routing_map(const at::Tensor& map, int64_t multiple) {
  const at::Tensor missing = map.sum(0).neg().remainder(multiple);
  const at::Tensor free = map.logical_not();
  return map.logical_or(free.logical_and(free.to(at::kInt).cumsum(0) <= missing));
}

}  // namespace hexad::modeling
