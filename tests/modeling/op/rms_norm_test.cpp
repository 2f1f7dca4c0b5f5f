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
