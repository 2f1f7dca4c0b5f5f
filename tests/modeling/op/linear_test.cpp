#include "modeling/op/linear.hpp"

#include "modeling/error.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/leaves.hpp"

namespace hexad::modeling {
namespace {

at::Tensor reference(const std::vector<at::Tensor>& in) {
  std::vector<at::Tensor> parts;
  for (size_t i = 1; i < 4; ++i) {
    const at::Tensor product = at::matmul(in[0], in[i].t());
    parts.push_back(in.size() > 4 ? product + in[i + 3] : product);
  }
  return at::cat(parts, 1);
}

std::vector<at::Tensor> inputs(int64_t tokens, bool biased) {
  std::vector<at::Tensor> in = {at::randn({tokens, 24}), at::randn({32, 24}), at::randn({8, 24}), at::randn({16, 24})};
  if (biased) in.insert(in.end(), {at::randn({32}), at::randn({8}), at::randn({16})});
  return in;
}

TEST_CASE("linears of one input equal their products, forward and backward") {
  at::manual_seed(1);
  for (const bool biased : {false, true}) {
    for (const int64_t tokens : {1, 13, 256}) {
      CAPTURE(tokens);
      const auto run = [&](const std::vector<at::Tensor>& in) {
        std::vector<at::Tensor> biases(3);
        if (biased) biases.assign(in.begin() + 4, in.end());
        return at::cat(apply_linears(in[0], {in[1], in[2], in[3]}, biases), 1);
      };
      check_op_everywhere(run, reference, inputs(tokens, biased));
    }
  }
}

TEST_CASE("weights side by side give what weights apart give") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      at::manual_seed(2);
      const auto options = at::TensorOptions(device).dtype(dtype);
      const at::Tensor flat = at::randn({56, 24}).to(options), bias = at::randn({56}).to(options);
      const at::Tensor x = at::randn({50, 24}).to(options).requires_grad_(true);
      const at::Tensor grad = at::randn({50, 56}).to(options);
      const auto run = [&](const std::vector<at::Tensor>& weights) {
        const std::vector<at::Tensor> biases = {bias.slice(0, 0, 32), bias.slice(0, 32, 40), bias.slice(0, 40)};
        const at::Tensor out = at::cat(apply_linears(x, weights, biases), 1);
        std::vector<at::Tensor> all = weights;
        all.push_back(x);
        std::vector<at::Tensor> result = torch::autograd::grad({out}, all, {grad});
        result.push_back(out);
        return result;
      };
      const auto together = leaves_of(flat, {32, 8, 16});
      std::vector<at::Tensor> apart;
      for (const at::Tensor& leaf : together) apart.push_back(leaf.detach().clone().requires_grad_(true));
      const std::vector<at::Tensor> got = run(together), want = run(apart);
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(relative_distance(got[i], want[i]) <= (dtype == at::kFloat ? 1e-6 : 4e-3));
    }
  }
}

TEST_CASE("a weight's fp32 grad() takes its gradient, and autograd gets none") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      at::manual_seed(3);
      const auto options = at::TensorOptions(device).dtype(dtype);
      const at::Tensor x = at::randn({64, 24}).to(options), grad = at::randn({64, 56}).to(options);
      const std::vector<at::Tensor> weights = leaves_of(at::randn({56, 24}).to(options), {32, 8, 16});
      const at::Tensor before = at::randn({56, 24}).to(device), sums = before.clone();
      const std::vector<at::Tensor> parts = {sums.slice(0, 0, 32), sums.slice(0, 32, 40), sums.slice(0, 40)};
      for (size_t i = 0; i < 3; ++i) at::Tensor(weights[i]).mutable_grad() = parts[i];
      const at::Tensor out = at::cat(apply_linears(x, weights, std::vector<at::Tensor>(3)), 1);
      const auto none = torch::autograd::grad({out}, weights, {grad}, false, false, /*allow_unused=*/true);
      for (const at::Tensor& gradient : none) CHECK(!gradient.defined());
      const at::Tensor want = before.to(at::kDouble) + at::mm(grad.to(at::kDouble).t(), x.to(at::kDouble));
      CHECK(relative_distance(sums, want) <= (device.is_cpu() && dtype != at::kFloat ? 4e-3 : 1e-6));
    }
  }
}

TEST_CASE("linears refuse more weights than three") {
  const at::Tensor weight = at::randn({4, 4});
  CHECK_THROWS_WITH_AS(apply_linears(weight, std::vector<at::Tensor>(4, weight), std::vector<at::Tensor>(4)),
                       "linears of one input: got 4 weights, wanted 1 to 3", Error);
}

}  // namespace
}  // namespace hexad::modeling
