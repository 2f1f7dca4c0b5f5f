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

TEST_CASE("rotate_heads turns queries and keys of one projection, and leaves the values") {
  at::manual_seed(6);
  for (const int64_t dim : {16, 64, 128, 24}) {
    for (const auto& [q_heads, kv_heads] : {std::pair<int64_t, int64_t>{12, 2}, {4, 4}, {8, 1}}) {
      RopeConfig config;
      const at::Tensor positions = at::randint(0, 5000, {19}, at::kLong);
      const int64_t q = q_heads * dim, kv = kv_heads * dim;
      const auto part = [&](const at::Tensor& x, int64_t begin, int64_t width) {
        return x.slice(1, begin, begin + width).unflatten(1, {-1, dim});
      };
      const auto run = [&](const auto& in) {
        const auto [a, b, c] = rotate_heads(part(in[0], 0, q), part(in[0], q, kv), part(in[0], q + kv, kv),
                                            make_rope(config, dim, positions.to(in[0].device())));
        return at::cat({a, b, c}, 1);
      };
      const auto plain = [&](const auto& in) {
        const Rope rope = make_rope(config, dim, positions.to(in[0].device()));
        const at::Tensor cos = rope.cos.to(at::kDouble).unsqueeze(1), sin = rope.sin.to(at::kDouble).unsqueeze(1);
        const at::Tensor turned = part(in[0], 0, q + kv);
        const at::Tensor first = turned.slice(2, 0, dim / 2), second = turned.slice(2, dim / 2);
        return at::cat({at::cat({first * cos - second * sin, second * cos + first * sin}, 2), part(in[0], q + kv, kv)},
                       1);
      };
      check_op_everywhere(run, plain, {at::randn({19, q + 2 * kv})});
    }
  }
}

}  // namespace
}  // namespace hexad::modeling
