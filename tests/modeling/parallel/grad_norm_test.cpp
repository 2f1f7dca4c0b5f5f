#include "modeling/parallel/grad_norm.hpp"

#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace hexad::modeling {

TEST_CASE("the norm of a large gradient is as exact as that of a small one") {
  const double value = 1e-3;
  const int64_t count = (int64_t{1} << 24) + 17;
  const std::vector<at::Tensor> grads = {at::full({count}, value, at::kFloat), at::full({3, 5}, value, at::kFloat)};
  const double all = std::sqrt(static_cast<double>(count + 15)), exact = static_cast<double>(1e-3f);
  CHECK(global_grad_norm(grads, 2, {}) == doctest::Approx(all * exact).epsilon(5e-6));
  CHECK(global_grad_norm(grads, 1, {}) == doctest::Approx((count + 15) * exact).epsilon(5e-6));
  CHECK(global_grad_norm(grads, std::numeric_limits<double>::infinity(), {}) == exact);
}

TEST_CASE("the pieces that gradients are cut into do not show in their norm") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor grad = at::randn({200001}, at::kFloat).to(type);
    const double exact = grad.to(at::kDouble).norm().item<double>();
    const double whole = global_grad_norm({grad}, 2, {});
    const double pieces = global_grad_norm({grad.slice(0, 0, 7), grad.slice(0, 7, 70001), grad.slice(0, 70001)}, 2, {});
    CHECK(std::abs(whole - exact) <= 1e-12 * exact);
    CHECK(std::abs(pieces - whole) <= 1e-12 * exact);
  }
}

TEST_CASE("the norm of no gradient, an empty one and one that is a view") {
  CHECK(global_grad_norm({}, 2, {}) == 0);
  CHECK(global_grad_norm({at::empty({0})}, 2, {}) == 0);
  const at::Tensor wide = at::ones({512, 512});
  CHECK(global_grad_norm({wide.t(), wide.slice(1, 0, 256)}, 2, {}) == doctest::Approx(std::sqrt(512.0 * 768)));
}

}  // namespace hexad::modeling
