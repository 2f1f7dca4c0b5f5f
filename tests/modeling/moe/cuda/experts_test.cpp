// On a GPU (suite "gpu"): experts at the sizes of training, what they wait for, and that they repeat themselves.
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/autograd/autograd.h>

#include "modeling/moe/grouped_experts.hpp"
#include "modeling/moe/grouped_products.hpp"
#include "modeling/moe/moe_layer.hpp"
#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/devices.hpp"
#include "tests/support/test_device.hpp"

namespace hexad::modeling {
namespace {

using Tensors = std::vector<at::Tensor>;

const at::Device kGpu(at::kCUDA, 0);

struct Layer {
  int64_t tokens = 1000, hidden = 256, width = 96, experts = 16, topk = 4;
};

at::Tensor random(at::IntArrayRef shape, double scale = 1) {
  return (at::randn(shape, at::TensorOptions(kGpu)) * scale).to(at::kBFloat16);
}

// Weights as FSDP gathers them, and sums as it reduces them, over `ranks`.
struct Model {
  ExpertWeights weights;
  Tensors leaves;
  at::Tensor sums;  // fp32 [ranks, 3 * experts * size / ranks]

  Model(const Layer& l, int64_t ranks) {
    const int64_t size = l.hidden * l.width, part = size / ranks;
    const at::Tensor flat = random({l.experts * 3 * size}, 0.05);
    sums = at::zeros({ranks, l.experts * 3 * part}, at::TensorOptions(kGpu));
    weights.local = {0, l.experts};
    for (int64_t e = 0; e < l.experts; ++e)
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t rows = i == 2 ? l.hidden : l.width;
        at::Tensor leaf = at::empty({0}, flat.options());
        leaf.set_(flat.storage(), (3 * e + i) * size, {rows, size / rows});
        leaf.requires_grad_(true).mutable_grad() =
            sums.narrow(1, (3 * e + i) * part, part).view({ranks, rows / ranks, size / rows});
        (i == 0 ? weights.gate : i == 1 ? weights.up : weights.down).push_back(leaf);
        leaves.push_back(leaf);
      }
  }
};

Tensors run(const Layer& l, const Model& model, const at::Tensor& x, const at::Tensor& logits, const at::Tensor& grad) {
  TopkOptions options;
  options.topk = l.topk;
  const at::Tensor out = run_local_experts(x, topk_routing(logits, options), l.experts, model.weights);
  Tensors in = {x, logits};
  in.insert(in.end(), model.leaves.begin(), model.leaves.end());
  Tensors result = torch::autograd::grad({out}, in, {grad}, false, false, /*allow_unused=*/true);
  result.resize(2);
  result.push_back(out.detach());
  return result;
}

struct Inputs {
  at::Tensor x, logits, grad;
  explicit Inputs(const Layer& l)
      : x(random({l.tokens, l.hidden}).requires_grad_(true)),
        logits(at::randn({l.tokens, l.experts}, at::TensorOptions(kGpu)).requires_grad_(true)),
        grad(random({l.tokens, l.hidden})) {}
};

void check_sums(const Layer& l, int64_t ranks) {
  CAPTURE(ranks);
  at::manual_seed(51);
  const Model model(l, ranks);
  const int64_t rows = l.tokens * l.topk;
  const at::Tensor grad = random({rows, 2 * l.width}), x = random({rows, l.hidden});
  at::Tensor ends = std::get<0>(at::randint(0, rows, {l.experts}, at::TensorOptions(kGpu).dtype(at::kInt)).sort());
  ends[l.experts - 1].fill_(rows), ends[2].copy_(ends[1]);  // an expert without rows
  model.sums.normal_();
  const at::Tensor before = model.sums.clone();
  for (const at::Tensor& result : grouped_weight_gradients(grad, x, {model.weights.gate, model.weights.up}, ends))
    CHECK_FALSE(result.defined());
  const at::Tensor host = ends.cpu(), change = (model.sums.to(at::kDouble) - before.to(at::kDouble));
  const int64_t part = l.hidden * l.width / ranks;
  for (int64_t e = 0; e < l.experts; ++e)
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t begin = e > 0 ? host[e - 1].item<int>() : 0, end = host[e].item<int>();
      const at::Tensor got = change.narrow(1, (3 * e + i) * part, part).reshape({-1, l.hidden});
      if (i == 2 || begin == end) {
        CHECK(got.count_nonzero().item<int64_t>() == 0);
        continue;
      }
      const at::Tensor of = grad.slice(0, begin, end).narrow(1, i * l.width, l.width);
      CHECK(relative_distance(got, at::mm(of.to(at::kDouble).t(), x.slice(0, begin, end).to(at::kDouble))) <= 1e-5);
    }
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("weight gradients of experts are added in fp32, unrounded, wherever their parts lie") {
  for (const int64_t ranks : {1, 2, 4, 8}) check_sums({.tokens = 700, .width = 192}, ranks);  // 192 = one tile
  for (const int64_t ranks : {1, 4}) check_sums({.tokens = 300, .hidden = 264, .width = 96}, ranks);
  check_sums({.tokens = 3, .topk = 2}, 2);  // shorter than a tile is deep
  check_sums({.tokens = 2000, .hidden = 768, .width = 2048, .experts = 5, .topk = 2}, 4);
}

TEST_CASE("parts of too few rows for the product are added after it") {
  at::manual_seed(52);
  const Layer l{.tokens = 200, .hidden = 64, .width = 48, .experts = 8};
  const Inputs in(l);
  const Model few(l, 16), whole(l, 1);  // three rows of 48 a part
  for (size_t i = 0; i < few.leaves.size(); ++i) few.leaves[i].detach().copy_(whole.leaves[i].detach());
  run(l, few, in.x, in.logits, in.grad), run(l, whole, in.x, in.logits, in.grad);
  for (size_t i = 0; i < few.leaves.size(); ++i)
    CHECK(relative_distance(few.leaves[i].grad().reshape(whole.leaves[i].sizes()),
                            whole.leaves[i].grad().reshape(whole.leaves[i].sizes())) <= 4e-3);
}

TEST_CASE("experts on a GPU equal the loop over them") {
  for (const Layer& l : {Layer{}, Layer{.tokens = 1}, Layer{.tokens = 5, .experts = 128, .topk = 8},
                         Layer{.tokens = 4096, .hidden = 2048, .width = 768, .experts = 128, .topk = 8}}) {
    if (test_device::under_sanitizer() && l.tokens > 1000) continue;
    at::manual_seed(53);
    const Inputs in(l);
    const Model model(l, 4), looped(l, 1);
    for (size_t i = 0; i < model.leaves.size(); ++i) looped.leaves[i].detach().copy_(model.leaves[i].detach());
    const PoisonedMemory poisoned;
    REQUIRE(fits_grouped_experts(in.x, model.weights));
    const Tensors got = run(l, model, in.x, in.logits, in.grad);
    TopkOptions options;
    options.topk = l.topk;
    const Permutation order = sort_by_expert(topk_routing(in.logits, options), l.experts);
    const at::Tensor probs = permute_probs(topk_routing(in.logits, options).probs, order);
    const at::Tensor out =
        unpermute(grouped_mlp(permute(in.x, order), order.counts_on_host(), looped.weights, probs), order);
    Tensors all = {in.x, in.logits};
    all.insert(all.end(), looped.leaves.begin(), looped.leaves.end());
    const Tensors want = torch::autograd::grad({out}, all, {in.grad}, false, false, true);
    CHECK(relative_distance(got[2], out.detach()) <= 1e-2);
    CHECK(relative_distance(got[0], want[0]) <= 1.5e-2);
    CHECK(relative_distance(got[1], want[1]) <= 1.5e-2);
    for (size_t i = 0; i < model.leaves.size(); ++i)
      CHECK(relative_distance(model.leaves[i].grad().reshape(looped.leaves[i].sizes()),
                              looped.leaves[i].grad().reshape(looped.leaves[i].sizes())) <= 1.5e-2);
  }
}

TEST_CASE("local experts never wait for the device, and repeat themselves") {
  at::manual_seed(54);
  const Layer l;
  const Inputs in(l);
  const Model model(l, 4);
  const Tensors first = run(l, model, in.x, in.logits, in.grad);
  const at::Tensor sums = model.sums.clone();
  model.sums.zero_();
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  Tensors second;
  CHECK_NOTHROW(second = run(l, model, in.x, in.logits, in.grad));
  CHECK_THROWS(in.x.sum().item());  // the mode is on
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
  for (size_t i = 0; i < first.size(); ++i) CHECK(second[i].equal(first[i]));
  CHECK(model.sums.equal(sums));
}

TEST_SUITE_END();

}  // namespace hexad::modeling
