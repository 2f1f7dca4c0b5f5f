#include "modeling/moe/router.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

const TensorFunction kPlain = [](const auto& in) { return at::linear(in[0], in[1]); };

TEST_CASE("logits of a router equal the product, forward and backward") {
  at::manual_seed(61);
  for (const int64_t tokens : {1, 40}) {
    const std::vector<at::Tensor> in = {at::randn({tokens, 64}), at::randn({24, 64})};
    check_op_everywhere([](const auto& x) { return router_linear(x[0], x[1], at::kFloat); }, kPlain, in);
  }
}

// Factors of 16 bits, sums of 32: nothing is rounded but the factors.
TEST_CASE("fp32 logits of 16-bit factors are exact to fp32, tiled or not") {
  at::manual_seed(62);
  for (const at::Device device : test_devices()) {
    const auto random = [&](int64_t rows) { return at::randn({rows, 64}).to(device, at::kBFloat16); };
    const at::Tensor x = random(40), weight = random(24);
    const at::Tensor want = kPlain({x.to(at::kDouble), weight.to(at::kDouble)});
    for (const int64_t row_tile : {0, 16}) {
      const at::Tensor got = router_linear(x, weight, at::kFloat, row_tile);
      CHECK(bool(got.scalar_type() == at::kFloat));
      CHECK(relative_distance(got, want) <= 1e-6);
    }
  }
}

TEST_CASE("the fp32 sum of a router's weight takes its gradient") {
  at::manual_seed(63);
  for (const at::Device device : test_devices()) {
    const auto random = [&](int64_t rows, int64_t columns) { return at::randn({rows, columns}).to(device); };
    const at::Tensor x = random(40, 64).to(at::kBFloat16), grad = random(40, 24), before = random(24, 64);
    at::Tensor weight = random(24, 64).to(at::kBFloat16).requires_grad_(true);
    weight.mutable_grad() = before.clone();
    const at::Tensor out = router_linear(x, weight, at::kFloat);
    CHECK(!torch::autograd::grad({out}, {weight}, {grad}, false, false, /*allow_unused=*/true)[0].defined());
    const at::Tensor want = before.to(at::kDouble) + at::mm(grad.to(at::kDouble).t(), x.to(at::kDouble));
    CHECK(relative_distance(weight.grad(), want) <= 1e-6);
  }
}

}  // namespace
}  // namespace hexad::modeling
