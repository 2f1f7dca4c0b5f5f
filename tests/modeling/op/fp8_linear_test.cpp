// Linears in FP8 beside those of fp64, forward and backward.
//
// Bounds: rounding to e4m3 (3 bits of mantissa) leaves errors of at most 2^-4, spread evenly: 0.026 in the root of
// their mean square. Both operands have them, independently, and in a sum over K of random signs errors grow like the
// sum itself: sqrt(2) * 0.026 = 0.037 of the norm. With e5m2 (2 bits) on one side: sqrt(0.026^2 + 0.053^2) = 0.059.
#include "modeling/op/fp8/linear.hpp"

#include "modeling/op/linear.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/leaves.hpp"

namespace hexad::modeling {
namespace {

constexpr double kTwoE4m3 = 0.040, kWithE5m2 = 0.063;
const Fp8 kFormats[] = {Fp8::e4m3, Fp8::hybrid, Fp8::blockwise_e4m3, Fp8::blockwise_hybrid};

LinearOptions in_fp8(Fp8 format) {
  LinearOptions options;
  options.fp8 = format;
  return options;
}

at::Tensor leaf(const at::Tensor& x) { return x.detach().clone().requires_grad_(true); }

struct Case {
  at::Tensor x, flat, bias, grad;  // flat: three weights below each other
  std::vector<int64_t> rows = {96, 16, 48};

  Case(int64_t tokens, int64_t width, const at::TensorOptions& options)
      : x(at::randn({tokens, width}).to(options)),
        flat((at::randn({160, width}) * 0.05).to(options)),
        bias(at::randn({160}).to(options)),
        grad((at::randn({tokens, 160}) * 1e-3).to(options)) {}

  std::vector<at::Tensor> apart() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& part : flat.split_with_sizes(rows)) all.push_back(leaf(part));
    return all;
  }
  std::vector<at::Tensor> together() const { return leaves_of(flat.clone(), rows); }
  std::vector<at::Tensor> biases() const { return bias.split_with_sizes(rows); }
};

// Output, gradient of x, gradients of the weights in one.
std::vector<at::Tensor> run(const Case& c, const std::vector<at::Tensor>& weights, const LinearOptions& options,
                            const std::vector<at::Tensor>& biases = std::vector<at::Tensor>(3)) {
  std::vector<at::Tensor> wanted = {leaf(c.x)};
  wanted.insert(wanted.end(), weights.begin(), weights.end());
  const at::Tensor y = at::cat(apply_linears(wanted[0], weights, biases, options), 1);
  const std::vector<at::Tensor> grads = torch::autograd::grad({y}, wanted, {c.grad});
  return {y.detach(), grads[0], at::cat(std::vector<at::Tensor>(grads.begin() + 1, grads.end()))};
}

std::vector<at::Tensor> exact(const Case& c, bool biased = false) {
  const at::Tensor x = c.x.to(at::kDouble), w = c.flat.to(at::kDouble), g = c.grad.to(at::kDouble);
  const at::Tensor y = at::mm(x, w.t());
  return {biased ? y + c.bias.to(at::kDouble) : y, at::mm(g, w), at::mm(g.t(), x)};
}

bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return x.equal(y); });
}

template <typename Body>
void everywhere(Body&& body) {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      CAPTURE(device.str());
      CAPTURE(at::toString(type));
      at::manual_seed(6);
      body(at::TensorOptions(device).dtype(type));
    }
  }
}

TEST_CASE("linears in FP8 are near exact products, forward and backward, and no nearer than FP8 is") {
  everywhere([](const at::TensorOptions& options) {
    for (const Fp8 format : kFormats) {
      for (const int64_t tokens : {33, 512}) {
        const Case c(tokens, 256, options);
        for (const bool biased : {false, true}) {
          const auto got = run(c, c.apart(), in_fp8(format), biased ? c.biases() : std::vector<at::Tensor>(3));
          const auto want = exact(c, biased);
          for (size_t i = 0; i < 3; ++i) {
            CAPTURE(i);
            const double error = relative_distance(got[i], want[i]);
            CHECK(bool(got[i].scalar_type() == at::typeMetaToScalarType(options.dtype())));
            CHECK(error <= (i > 0 && fp8_gradient_type(format) == at::kFloat8_e5m2 ? kWithE5m2 : kTwoE4m3));
            CHECK(error >= 0.01);
          }
        }
      }
    }
  });
}

TEST_CASE("weights side by side, apart, and without a graph give the same bits") {
  everywhere([](const at::TensorOptions& options) {
    for (const Fp8 format : kFormats) {
      const Case c(65, 64, options);
      const auto want = run(c, c.apart(), in_fp8(format), c.biases());
      CHECK(same(run(c, c.together(), in_fp8(format), c.biases()), want));
      const at::NoGradGuard no_grad;
      CHECK(at::cat(apply_linears(c.x, c.apart(), c.biases(), in_fp8(format)), 1).equal(want[0]));
    }
  });
}

TEST_CASE("a bias adds its gradient, as in fp32") {
  everywhere([](const at::TensorOptions& options) {
    const Case c(65, 64, options);
    const at::Tensor bias = leaf(c.bias.slice(0, 0, 96));
    const at::Tensor y = apply_linear(c.x, c.flat.slice(0, 0, 96), bias, in_fp8(Fp8::e4m3));
    const at::Tensor grad = c.grad.slice(1, 0, 96);
    CHECK(relative_distance(torch::autograd::grad({y}, {bias}, {grad})[0], grad.to(at::kDouble).sum(0)) <= 4e-3);
  });
}

TEST_CASE("micro-batches add to the fp32 grad() of weights, whole or as ranks' parts, and autograd gets none") {
  everywhere([](const at::TensorOptions& options) {
    for (const auto& [by_rank, format] :
         {std::pair{false, Fp8::hybrid}, std::pair{true, Fp8::hybrid}, std::pair{false, Fp8::blockwise_hybrid},
          std::pair{true, Fp8::blockwise_e4m3}}) {
      const Case c(65, 64, options);
      const std::vector<at::Tensor> weights = c.together();
      const at::Tensor one = run(c, c.apart(), in_fp8(format))[2];
      const at::Tensor sums = at::randn({160, 64}, options.dtype(at::kFloat)), before = sums.clone();
      at::Tensor ranked = at::randn({4, 160 / 4 * 64 + 32}, sums.options());
      std::vector<at::Tensor> slots;
      int64_t begin = 0;
      for (size_t i = 0; i < 3; begin += c.rows[i++]) {
        const int64_t chunk = c.rows[i] / 4;
        slots.push_back(by_rank ? ranked.narrow(1, begin / 4 * 64, chunk * 64).view({4, chunk, 64})
                                : sums.slice(0, begin, begin + c.rows[i]));
        if (by_rank) slots[i].copy_(before.slice(0, begin, begin + c.rows[i]).view({4, chunk, 64}));
        at::Tensor(weights[i]).mutable_grad() = slots[i];
      }
      for (int i = 0; i < 2; ++i) {
        const at::Tensor y = at::cat(apply_linears(c.x, weights, std::vector<at::Tensor>(3), in_fp8(format)), 1);
        const auto none = torch::autograd::grad({y}, weights, {c.grad}, false, false, /*allow_unused=*/true);
        for (const at::Tensor& gradient : none) CHECK(!gradient.defined());
      }
      std::vector<at::Tensor> got;
      for (size_t i = 0; i < 3; ++i) got.push_back(slots[i].reshape({c.rows[i], 64}));
      CHECK(relative_distance(at::cat(got) - before, 2 * one) <= (c.x.scalar_type() == at::kFloat ? 1e-3 : 4e-3));
    }
  });
}

TEST_CASE("outputs without a gradient, and inputs that want none") {
  everywhere([](const at::TensorOptions& options) {
    const Case c(40, 64, options);
    std::vector<at::Tensor> weights = c.apart();
    const at::Tensor x = leaf(c.x);
    const auto y = apply_linears(x, weights, std::vector<at::Tensor>(3), in_fp8(Fp8::e4m3));
    const at::Tensor grad = c.grad.slice(1, 0, 96);
    const auto got = torch::autograd::grad({y[0]}, {x, weights[0], weights[1]}, {grad});
    CHECK(relative_distance(got[0], at::mm(grad.to(at::kDouble), weights[0].detach().to(at::kDouble))) <= kTwoE4m3);
    CHECK(got[2].count_nonzero().item<int64_t>() == 0);
    for (at::Tensor& weight : weights) weight = weight.detach();
    const at::Tensor frozen = at::cat(apply_linears(x, weights, std::vector<at::Tensor>(3), in_fp8(Fp8::e4m3)), 1);
    CHECK(relative_distance(torch::autograd::grad({frozen}, {x}, {c.grad})[0], exact(c)[1]) <= kTwoE4m3);
    const at::Tensor alone = apply_linear(c.x, leaf(c.flat), {}, in_fp8(Fp8::e4m3));
    CHECK(alone.requires_grad());
  });
}

TEST_CASE("what does not fit stays in its own type") {
  everywhere([](const at::TensorOptions& options) {
    const at::Tensor x = at::randn({20, 64}).to(options), w = at::randn({32, 64}).to(options);
    CHECK(fits_fp8(x, {w, w}));
    CHECK_FALSE(fits_fp8(x.slice(0, 0, 0), {w}));
    CHECK_FALSE(fits_fp8(x, {w, w.slice(0, 0, 24)}));
    CHECK_FALSE(fits_fp8(x.slice(1, 0, 40), {w.slice(1, 0, 40)}));
    CHECK_FALSE(fits_fp8(x, {w.to(at::kDouble)}));
    for (const int64_t rows : {24, 31}) {
      const at::Tensor odd = leaf(w.slice(0, 0, rows)), plain = leaf(odd);
      const at::Tensor got = apply_linear(x, odd, {}, in_fp8(Fp8::e4m3)), want = apply_linear(x, plain);
      CHECK(got.equal(want));
      const at::Tensor grad = at::randn({20, rows}).to(options);
      CHECK(torch::autograd::grad({got}, {odd}, {grad})[0].equal(torch::autograd::grad({want}, {plain}, {grad})[0]));
    }
    CHECK(apply_linear(x.slice(0, 0, 0), w, {}, in_fp8(Fp8::e4m3)).size(0) == 0);
  });
}

}  // namespace
}  // namespace hexad::modeling
