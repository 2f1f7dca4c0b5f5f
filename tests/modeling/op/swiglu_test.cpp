#include "modeling/op/swiglu.hpp"

#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

TEST_CASE("swiglu equals silu(gate) * up, forward and backward") {
  at::manual_seed(2);
  for (int64_t width : {1, 80, 1537}) {
    CAPTURE(width);
    check_op_everywhere([](const auto& in) { return swiglu(in[0], in[1]); },
                        [](const auto& in) { return in[0] * in[0].sigmoid() * in[1]; },
                        {at::randn({37, width}) * 4, at::randn({37, width})});
  }
}

TEST_CASE("swiglu of huge and of non-finite gates") {
  const at::Tensor gate = at::tensor(std::vector<float>{-1e4f, -200.0f, 0.0f, 200.0f, 1e4f, NAN});
  const at::Tensor y = swiglu(gate, at::ones_like(gate));
  CHECK(distance(y.slice(0, 0, 5), gate.slice(0, 0, 5).clamp_min(0)) <= 1e-30);
  CHECK(y[5].isnan().item<bool>());
}

TEST_CASE("swiglu of the two halves of one projection") {
  at::manual_seed(5);
  for (const int64_t columns : {8, 72, 8960}) {
    const auto fast = [&](const auto& in) { return swiglu(in[0].slice(1, 0, columns), in[0].slice(1, columns)); };
    const auto plain = [&](const auto& in) { return at::silu(in[0].slice(1, 0, columns)) * in[0].slice(1, columns); };
    check_op_everywhere(fast, plain, {at::randn({37, 2 * columns}) * 2});
  }
}

}  // namespace
}  // namespace hexad::modeling
