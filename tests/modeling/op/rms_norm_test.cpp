#include "modeling/op/rms_norm.hpp"

#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

at::Tensor reference(const std::vector<at::Tensor>& in) {
  return in[0] * (in[0].square().mean(-1, true) + 1e-5).rsqrt() * in[1];
}

TEST_CASE("rms_norm equals its formula, forward and backward") {
  at::manual_seed(1);
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{1, 7}, {130, 48}, {67, 3, 64}}) {
    CAPTURE(shape.back());
    check_op_everywhere([](const auto& in) { return rms_norm(in[0], in[1], 1e-5); }, reference,
                        {at::randn(shape) * 3, at::randn({shape.back()})});
  }
}

// Widths that are a warp's, one, two, four and eight turns of a block; rows that do not fill a block.
TEST_CASE("rms_norm of wide rows, and of the heads of a fused projection") {
  at::manual_seed(2);
  const auto run = [](const auto& in) { return rms_norm(in[0], in[1], 1e-5); };
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {1, 8}, {9, 256}, {700, 1536}, {5, 2056}, {3, 8192}, {2, 16384}, {33, 12, 128}, {3, 16392}}) {
    CAPTURE(shape.back());
    check_op_everywhere(run, reference, {at::randn(shape) * 3, at::randn({shape.back()})});
  }
  const auto strided = [](const auto& in) {
    return rms_norm(in[0].slice(1, 64, 64 + 3 * 128).view({in[0].size(0), 3, 128}), in[1], 1e-5);
  };
  const auto plain = [](const auto& in) {
    return reference({in[0].slice(1, 64, 64 + 3 * 128).reshape({in[0].size(0), 3, 128}), in[1]});
  };
  check_op_everywhere(strided, plain, {at::randn({21, 512}), at::randn({128})});
}

TEST_CASE("rms_norm by a weight that begins inside of a word, as in a buffer of many") {
  at::manual_seed(4);
  const auto run = [](const auto& in) { return rms_norm(in[0], in[1].slice(0, 3), 1e-5); };
  const auto plain = [](const auto& in) { return reference({in[0], in[1].slice(0, 3)}); };
  check_op_everywhere(run, plain, {at::randn({20, 64}), at::randn({67})});
}

TEST_CASE("add_rms_norm is the sum and its norm, with the gradients of both") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      at::manual_seed(3);
      const at::Tensor hidden = at::randn({70, 1536}).to(device).requires_grad_(true);
      const at::Tensor delta = at::randn({70, 1536}).to(device, dtype).requires_grad_(true);
      const at::Tensor weight = at::randn({1536}).to(device, dtype).requires_grad_(true);
      const auto [sum, normed] = add_rms_norm(hidden, delta, weight, 1e-5);
      CHECK(bool(sum.scalar_type() == at::kFloat));
      CHECK(bool(normed.scalar_type() == dtype));
      const at::Tensor by_sum = at::randn({70, 1536}).to(device), by_norm = at::randn({70, 1536}).to(device, dtype);
      const auto got = torch::autograd::grad({sum, normed}, {hidden, delta, weight}, {by_sum, by_norm});
      std::vector<at::Tensor> wide;
      for (const at::Tensor& x : {hidden, delta, weight})
        wide.push_back(x.detach().to(at::kDouble).requires_grad_(true));
      const at::Tensor whole = wide[0] + wide[1], norm = reference({whole, wide[2]});
      const auto want = torch::autograd::grad({whole, norm}, wide, {by_sum.to(at::kDouble), by_norm.to(at::kDouble)});
      const double tolerance = dtype == at::kFloat ? 1e-5 : 8e-3;
      CHECK(relative_distance(sum, whole) <= 1e-6);
      CHECK(relative_distance(normed, norm) <= tolerance);
      for (size_t i = 0; i < 3; ++i) CHECK(relative_distance(got[i], want[i]) <= (i == 0 ? 1e-5 : tolerance));
    }
  }
}

TEST_CASE("add_rms_norm has the bits of residual_add and rms_norm, forward and backward") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      CAPTURE(device.str());
      at::manual_seed(5);
      const at::Tensor hidden = at::randn({70, 64}).to(device).requires_grad_(true);
      const at::Tensor delta = at::randn({70, 64}).to(device, dtype).requires_grad_(true);
      const at::Tensor weight = at::randn({64}).to(device, dtype).requires_grad_(true);
      const at::Tensor by_sum = at::randn({70, 64}).to(device), by_norm = at::randn({70, 64}).to(device, dtype);
      const auto gradients = [&](const at::Tensor& sum, const at::Tensor& normed) {
        return torch::autograd::grad({sum, normed}, {hidden, delta, weight}, {by_sum, by_norm});
      };
      const auto [sum, normed] = add_rms_norm(hidden, delta, weight, 1e-5);
      const at::Tensor sum_alone = residual_add(hidden, delta), norm_alone = rms_norm(sum_alone, weight, 1e-5);
      CHECK(sum.equal(sum_alone));
      CHECK(normed.equal(norm_alone));
      const auto got = gradients(sum, normed), want = gradients(sum_alone, norm_alone);
      for (size_t i = 0; i < 3; ++i) CHECK_MESSAGE(got[i].equal(want[i]), i);
    }
  }
}

TEST_CASE("rms_norm of zeros is zero, of nan is nan, and its rows are independent") {
  const at::Tensor x = at::randn({5, 16}), weight = at::ones({16});
  CHECK(rms_norm(at::zeros({3, 16}), weight, 1e-6).equal(at::zeros({3, 16})));
  const at::Tensor together = rms_norm(x, weight, 1e-6);
  CHECK(rms_norm(x.slice(0, 3, 4), weight, 1e-6).equal(together.slice(0, 3, 4)));
  x[1][2] = NAN;
  CHECK(rms_norm(x, weight, 1e-6)[1].isnan().all().item<bool>());
}

}  // namespace
}  // namespace hexad::modeling
