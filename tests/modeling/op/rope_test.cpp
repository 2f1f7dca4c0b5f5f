#include "modeling/op/rope.hpp"

#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

// Rotation as complex numbers: (a + ib) * e^(i * angle), a and b half a head apart.
at::Tensor reference(const at::Tensor& x, const Rope& rope) {
  const int64_t half = x.size(2) / 2;
  const at::Tensor turn = at::complex(rope.cos.to(at::kDouble), rope.sin.to(at::kDouble)).unsqueeze(1);
  const at::Tensor turned = at::complex(x.slice(2, 0, half).contiguous(), x.slice(2, half).contiguous()) * turn;
  return at::cat({at::real(turned), at::imag(turned)}, 2);
}

TEST_CASE("apply_rope rotates pairs, forward and backward") {
  at::manual_seed(3);
  const at::Tensor positions = at::randint(0, 5000, {41}, at::kLong);
  const auto rope = [&](const at::Tensor& x) { return make_rope({}, 24, positions.to(x.device())); };
  check_op_everywhere([&](const auto& in) { return apply_rope(in[0], rope(in[0])); },
                      [&](const auto& in) { return reference(in[0], rope(in[0])); }, {at::randn({41, 3, 24})});
}

TEST_CASE("apply_rope takes a strided input") {
  const Rope rope = make_rope({}, 8, at::arange(5));
  const at::Tensor x = at::randn({5, 8, 3}).transpose(1, 2);
  CHECK(apply_rope(x, rope).equal(apply_rope(x.contiguous(), rope)));
}

TEST_CASE("rope angles: position 0 is the identity, linear scaling divides positions, yarn scales the magnitude") {
  const at::Tensor positions = at::arange(0, 64, 8);
  const Rope plain = make_rope({}, 16, positions);
  CHECK(plain.cos[0].equal(at::ones({8})));
  CHECK(plain.sin[0].equal(at::zeros({8})));

  RopeConfig linear;
  linear.scaling = RopeScaling::linear;
  linear.factor = 4.0;
  CHECK(distance(make_rope(linear, 16, positions * 4).cos, plain.cos) <= 1e-5);

  RopeConfig yarn;
  yarn.scaling = RopeScaling::yarn;
  yarn.factor = 4.0;
  yarn.original_max_position_embeddings = 32;
  CHECK(make_rope(yarn, 16, positions).cos[0][0].item<double>() == doctest::Approx(0.1 * std::log(4.0) + 1.0));
  yarn.mscale = 0.707;
  yarn.mscale_all_dim = 0.707;
  CHECK(make_rope(yarn, 16, positions).cos[0][0].item<double>() == doctest::Approx(1.0));
  yarn.attention_factor = 1.5;
  CHECK(make_rope(yarn, 16, positions).cos[0][0].item<double>() == doctest::Approx(1.5));
}

}  // namespace
}  // namespace hexad::modeling
