#include "modeling/moe/dispatch/capacity.hpp"

#include <ATen/Functions.h>

#include <cmath>

namespace hexad::modeling {

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
