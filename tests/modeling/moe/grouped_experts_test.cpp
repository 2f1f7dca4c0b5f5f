// All experts at once against each by itself in fp64.
#include "modeling/moe/grouped_experts.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "modeling/moe/grouped_products.hpp"
#include "tests/modeling/moe/routings.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/devices.hpp"

namespace hexad::modeling {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int64_t kHidden = 24, kWidth = 40;

at::Tensor leaf(const at::Tensor& x) { return x.detach().requires_grad_(true); }

// Expert by expert: gate, up [F, H], down [H, F], in memory of one tensor, as backends hold them. `step`: 1, or -1
// where the last expert comes first, its down projection before the others.
ExpertWeights side_by_side(const at::Tensor& flat, int64_t experts, int64_t step) {
  const int64_t size = kWidth * kHidden;
  ExpertWeights w;
  w.local = {0, experts};
  for (int64_t e = 0; e < experts; ++e) {
    const auto part = [&](int64_t i, int64_t rows) {
      const int64_t place = step > 0 ? 3 * e + i : 3 * (experts - e) - 1 - i;
      at::Tensor view = at::empty({0}, flat.options());
      view.set_(flat.storage(), place * size, {rows, size / rows});
      return view.requires_grad_(true);
    };
    w.gate.push_back(part(0, kWidth)), w.up.push_back(part(1, kWidth)), w.down.push_back(part(2, kHidden));
  }
  return w;
}

ExpertWeights random_weights(int64_t experts, at::Device device, at::ScalarType dtype, int64_t step = 1) {
  return side_by_side((at::randn({3 * experts * kWidth * kHidden}) * 0.2).to(device, dtype), experts, step);
}

Tensors leaves_of(const ExpertWeights& w) {
  Tensors all = w.gate;
  all.insert(all.end(), w.up.begin(), w.up.end());
  all.insert(all.end(), w.down.begin(), w.down.end());
  return all;
}

// Output, and gradients of tokens, probabilities and weights, in fp64 on the CPU.
Tensors reference(const at::Tensor& tokens, const at::Tensor& probs, const at::Tensor& experts, const ExpertWeights& w,
                  const at::Tensor& grad) {
  const auto wide = [](const at::Tensor& x) { return leaf(x.detach().to(at::kCPU, at::kDouble)); };
  Tensors in = {wide(tokens), wide(probs)};
  for (const at::Tensor& weight : leaves_of(w)) in.push_back(wide(weight));
  const size_t count = w.gate.size();
  at::Tensor out = at::zeros_like(in[0]);
  for (size_t e = 0; e < count; ++e) {
    const at::Tensor share = (in[1] * experts.eq(static_cast<int64_t>(e))).sum(1, true);
    const at::Tensor gate = at::linear(in[0], in[2 + e]), up = at::linear(in[0], in[2 + count + e]);
    out = out + share * at::linear(at::silu(gate) * up, in[2 + 2 * count + e]);
  }
  Tensors result = torch::autograd::grad({out}, in, {grad.to(at::kCPU, at::kDouble)});
  result.insert(result.begin(), out.detach());
  return result;
}

struct Case {
  at::Tensor tokens, probs, grad;
  Permutation order;
};

Case make_case(const NamedRouting& routing, at::Device device, at::ScalarType dtype) {
  const auto random = [&] { return at::randn({routing.experts.size(0), kHidden}).to(device, dtype); };
  Case c{leaf(random()), leaf(at::rand(routing.experts.sizes()).to(device)), random(), {}};
  c.order = sort_by_expert({c.probs, routing.experts.to(device), {}}, routing.num_experts);
  return c;
}

Tensors run(const Case& c, const ExpertWeights& w) {
  Tensors in = {c.tokens, c.probs};
  const Tensors weights = leaves_of(w);
  in.insert(in.end(), weights.begin(), weights.end());
  const at::Tensor out = grouped_experts(c.tokens, c.probs, c.order, w);
  Tensors result = torch::autograd::grad({out}, in, {c.grad}, false, false, /*allow_unused=*/true);
  result.insert(result.begin(), out.detach());
  return result;
}

void check_grouped(const NamedRouting& routing, at::Device device, at::ScalarType dtype, int64_t step) {
  const ExpertWeights weights = random_weights(routing.num_experts, device, dtype, step);
  const Case c = make_case(routing, device, dtype);
  const PoisonedMemory poisoned;
  const Tensors got = run(c, weights), want = reference(c.tokens, c.probs, routing.experts, weights, c.grad);
  const double bound = dtype == at::kFloat ? 1e-5 : 1.5e-2;
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    if (!got[i].defined()) {  // without any token weights get nothing
      CHECK(routing.experts.numel() == 0);
      continue;
    }
    CHECK(bool(got[i].scalar_type() == (i == 2 ? at::kFloat : dtype)));
    CHECK(relative_distance(got[i], want[i]) <= bound);  // false for NaN
  }
}

TEST_CASE("all experts at once equal each by itself, forward and backward") {
  at::manual_seed(41);
  for (const at::Device device : test_devices())
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const NamedRouting& routing : routings())
        for (const int64_t step : {1, -1}) {
          INFO(routing.name << " on " << device.str() << ", " << dtype << ", step " << step);
          check_grouped(routing, device, dtype, step);
        }
}

TEST_CASE("without probabilities rows count once") {
  at::manual_seed(42);
  for (const at::Device device : test_devices()) {
    const NamedRouting routing = routings()[0];
    const ExpertWeights weights = random_weights(routing.num_experts, device, at::kFloat);
    Case c = make_case(routing, device, at::kFloat);
    const at::Tensor got = grouped_experts(c.tokens, {}, c.order, weights);
    CHECK(relative_distance(got, grouped_experts(c.tokens, at::ones_like(c.probs), c.order, weights)) <= 1e-6);
    CHECK(torch::autograd::grad({got}, {c.tokens}, {c.grad})[0].isfinite().all().item<bool>());
  }
}

// fp32 sums as FSDP lays them: `ranks` parts, of which each holds its rows of every weight; or as the weights lie.
Tensors sums_of(const ExpertWeights& w, int64_t ranks, at::Tensor& flat) {
  const Tensors weights = leaves_of(w);
  const int64_t size = kWidth * kHidden, experts = static_cast<int64_t>(w.gate.size()), part = size / ranks;
  flat = at::randn({ranks, 3 * experts * part}, at::TensorOptions(weights[0].device()));
  Tensors sums;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t e = 0; e < experts; ++e) {
      const int64_t rows = i == 2 ? kHidden : kWidth;
      const at::Tensor sum = flat.narrow(1, (3 * e + i) * part, part).view({ranks, rows / ranks, size / rows});
      sums.push_back(ranks == 1 ? sum[0] : sum);
    }
  return sums;
}

TEST_CASE("fp32 sums take the gradients of experts that have tokens, and autograd gets none") {
  for (const at::Device device : test_devices())
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const int64_t ranks : {1, 2, 4, 3}) {
        INFO(device.str() << ", " << dtype << ", ranks " << ranks);
        if (kWidth % ranks != 0) continue;
        at::manual_seed(43);
        const NamedRouting routing = routings()[1];
        const ExpertWeights weights = random_weights(routing.num_experts, device, dtype);
        const Case c = make_case(routing, device, dtype);
        const Tensors want = reference(c.tokens, c.probs, routing.experts, weights, c.grad),
                      leaves = leaves_of(weights);
        at::Tensor flat;
        const Tensors sums = sums_of(weights, ranks, flat);
        const at::Tensor before = flat.clone();
        for (size_t i = 0; i < leaves.size(); ++i) at::Tensor(leaves[i]).mutable_grad() = sums[i];
        const PoisonedMemory poisoned;
        const Tensors got = run(c, weights);
        const Tensors added = [&] {
          flat -= before;
          return sums;
        }();
        for (size_t i = 0; i < leaves.size(); ++i) {
          CAPTURE(i);
          CHECK_FALSE(got[i + 3].defined());
          const at::Tensor sum = added[i].reshape(leaves[i].sizes());
          CHECK(relative_distance(sum, want[i + 3]) <= (dtype == at::kFloat ? 1e-5 : 1.5e-2));
          if (routing.experts.eq(static_cast<int64_t>(i) % routing.num_experts).any().item<bool>()) continue;
          CHECK(sum.count_nonzero().item<int64_t>() == 0);
        }
      }
}

TEST_CASE("weights are taken as they lie, or gathered") {
  const ExpertWeights ascending = random_weights(3, at::kCPU, at::kFloat),
                      descending = random_weights(3, at::kCPU, at::kFloat, -1);
  const at::Tensor both = stacked(ascending.gate, ascending.up), down = stacked(ascending.down);
  CHECK(both.is_alias_of(ascending.gate[0]));
  CHECK(both.stride(0) == 3 * kWidth * kHidden);
  CHECK(down.is_alias_of(ascending.gate[0]));
  CHECK_FALSE(stacked(descending.gate, descending.up).is_alias_of(descending.gate[0]));
  for (const ExpertWeights* w : {&ascending, &descending}) {
    CHECK(stacked(w->gate, w->up).equal(at::cat({at::stack(w->gate), at::stack(w->up)}, 1)));
    CHECK(stacked(w->down).equal(at::stack(w->down)));
    CHECK(stacked({w->down[1]}).equal(w->down[1].unsqueeze(0)));
  }
  CHECK_FALSE(both.requires_grad());
}

TEST_CASE("the weighted activation and its gradients") {
  at::manual_seed(44);
  for (const at::Device device : test_devices())
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const int64_t columns : {8, 56, 768, 1000, 7}) {
        INFO(device.str() << ", " << dtype << ", columns " << columns);
        const int64_t rows = 37;
        const at::Tensor both = (at::randn({rows, 2 * columns}) * 2).to(device, dtype);
        const at::Tensor grad = at::randn({rows, columns}).to(device, dtype), probs = at::rand({rows}).to(device);
        const at::Tensor slots = at::randperm(rows, at::kLong).to(device);
        const PoisonedMemory poisoned;
        const at::Tensor x = leaf(both.to(at::kCPU, at::kDouble)), p = leaf(probs.to(at::kCPU, at::kDouble));
        const at::Tensor want =
            at::silu(x.slice(1, 0, columns)) * x.slice(1, columns) * p.index_select(0, slots.cpu()).unsqueeze(1);
        const Tensors grads = torch::autograd::grad({want}, {x, p}, {grad.to(at::kCPU, at::kDouble)});
        const WeightedSwigluGradient got = weighted_swiglu_gradient(grad, both, probs, slots);
        const double bound = dtype == at::kFloat ? 1e-6 : 4e-3;
        CHECK(relative_distance(weighted_swiglu(both, probs, slots), want) <= bound);
        CHECK(relative_distance(got.activation, want) <= bound);
        CHECK(relative_distance(got.gate_up, grads[0]) <= bound);
        CHECK(relative_distance(got.probs, grads[1]) <= 1e-5);
      }
}

}  // namespace
}  // namespace hexad::modeling
