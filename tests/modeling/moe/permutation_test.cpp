// Tokens sorted by expert, and back.
#include "modeling/moe/dispatch/permutation.hpp"

#include "tests/modeling/moe/routings.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/devices.hpp"

namespace hexad::modeling {
namespace {

Routing routing_of(const at::Tensor& experts, at::Device device) {
  return {at::rand(experts.sizes()).to(device), experts.to(device), {}};
}

TEST_CASE("pairs are sorted by expert and stay in order") {
  for (const at::Device device : test_devices()) {
    for (const NamedRouting& routing : routings()) {
      INFO(routing.name << " on " << device.str());
      const PoisonedMemory poisoned;
      const Permutation order = sort_by_expert(routing_of(routing.experts, device), routing.num_experts);
      const at::Tensor flat = routing.experts.flatten();
      const at::Tensor slots = at::argsort(flat, /*stable=*/true, 0, /*descending=*/false);
      const at::Tensor counts = at::bincount(flat, {}, routing.num_experts);
      CHECK(order.num_tokens == routing.experts.size(0));
      CHECK(order.slots.cpu().equal(slots));
      CHECK(order.tokens.cpu().equal(slots.floor_divide(routing.experts.size(1))));
      CHECK(order.rows.cpu().flatten().index_select(0, slots).equal(at::arange(flat.numel(), at::kLong)));
      CHECK(order.ends.cpu().equal(counts.cumsum(0).to(at::kInt)));
      CHECK(order.counts().cpu().equal(counts));
    }
  }
}

TEST_CASE("rows of tokens there and back, forward and backward") {
  at::manual_seed(31);
  for (const NamedRouting& routing : routings()) {
    CAPTURE(routing.name);
    for (const int64_t dim : {8, 24, 13}) {
      CAPTURE(dim);
      const at::Tensor& experts = routing.experts;
      // Positive, and the same in 16 bits: what is left is the rounding of rows and sums.
      const at::Tensor scale = (at::rand({experts.numel(), 1}) + 0.5).to(at::kBFloat16).to(at::kFloat);
      for (const at::Device device : test_devices()) {
        const PoisonedMemory poisoned;
        const Permutation order = sort_by_expert(routing_of(experts, device), routing.num_experts);
        const Permutation plain = sort_by_expert(routing_of(experts, at::kCPU), routing.num_experts);
        const TensorFunction fast = [&](const auto& in) {
          return unpermute(permute(in[0], order) * scale.to(in[0].options()), order);
        };
        const TensorFunction slow = [&](const auto& in) {
          const at::Tensor rows = in[0].cpu().index_select(0, plain.tokens) * scale.to(at::kDouble);
          return at::zeros(in[0].sizes(), at::kDouble).index_add(0, plain.tokens, rows).to(in[0].device());
        };
        check_op(fast, slow, {at::randn({experts.size(0), dim})}, device, at::kFloat, 1e-6);
        check_op(fast, slow, {at::randn({experts.size(0), dim})}, device, at::kBFloat16, 8e-3);
      }
    }
  }
}

TEST_CASE("a range of experts has its own ends") {
  const at::Tensor experts = std::get<1>(at::rand({30, 6}).topk(2, 1));
  for (const at::Device device : test_devices()) {
    const Permutation all = sort_by_expert(routing_of(experts, device), 6), part = of_experts(all, {2, 5});
    const std::vector<int64_t> counts = all.counts_on_host();
    CHECK(part.counts_on_host() == std::vector<int64_t>(counts.begin() + 2, counts.begin() + 5));
    CHECK(part.tokens.equal(all.tokens.slice(0, counts[0] + counts[1], counts[0] + counts[1] + part.tokens.size(0))));
    CHECK_FALSE(part.rows.defined());
    CHECK(of_experts(all, {3, 3}).tokens.numel() == 0);
  }
}

}  // namespace
}  // namespace hexad::modeling
