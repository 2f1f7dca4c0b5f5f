#include "modeling/parallel/tensor/state_tensor.hpp"

#include <limits>

#include "modeling/parallel/optimizer.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

at::Tensor spread(int64_t count) {  // magnitudes from 1e-12 to 1e6
  return at::randn({count}).mul(at::pow(10.0, at::rand({count}).mul(18).sub(12)));
}

TEST_CASE("a parameter and its remainder are the master, bit for bit") {
  at::manual_seed(1);
  const float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
  const at::Tensor odd = at::tensor(
      std::vector<float>{0.0f, -0.0f, largest, -largest, smallest, -smallest, INFINITY, -INFINITY, 1.00390625f});
  const at::Tensor value = at::cat({spread(5000), odd});
  const at::Tensor parameter = at::empty(value.sizes(), at::kBFloat16),
                   remainder = at::empty(value.sizes(), at::kShort);
  split_remainder(value, parameter, remainder);
  CHECK(join_remainder(parameter, remainder).view(at::kInt).equal(value.view(at::kInt)));
  const at::Tensor spoken = value.slice(0, 0, 5000), rounded = parameter.slice(0, 0, 5000).to(at::kFloat);
  CHECK((rounded - spoken).abs().le(spoken.abs() / 256).all().item<bool>());  // half of the last of 8 bits
}

TEST_CASE("state in bf16 is rounded, in fp16 and fp8 scaled by its largest value") {
  at::manual_seed(2);
  const at::Tensor value = at::randn({1000}) * 3e-6;
  for (const auto& [type, limit] :
       {std::pair{at::kBFloat16, 0.0}, {at::kHalf, 65504.0 / 2}, {at::kFloat8_e4m3fn, 448.0}}) {
    StateTensor state(value, type);
    CHECK(state.load().equal(at::zeros_like(value)));
    state.store(value);
    CHECK(state.bytes() == 1000 * static_cast<int64_t>(c10::elementSize(type)));
    const double scale = limit > 0 ? value.abs().max().item<double>() / limit : 1.0;
    const at::Tensor want = (value / scale).to(type).to(at::kFloat) * scale;
    CHECK(relative_distance(state.load(), want) < 1e-6);
    CHECK(relative_distance(state.load(), value) < (limit == 448.0 ? 0.05 : limit > 0 ? 5e-4 : 4e-3));
    state.store(state.load());
    CHECK(relative_distance(state.load(), want) < 1e-6);
    state.store(at::zeros_like(value));
    CHECK(state.load().equal(at::zeros_like(value)));
  }
  StateTensor plain(value, at::kFloat);
  plain.load().copy_(value);  // in place
  CHECK(plain.load().equal(value));
}

TEST_CASE("Adam with narrow state rounds it after every step and nothing else") {
  at::manual_seed(3);
  OptimizerOptions options = parse_optimizer("AdamW", {{"lr", 0.1}});
  options.average_type = at::kBFloat16;
  options.square_type = at::kBFloat16;
  Optimizer optimizer(options);
  std::vector<at::Tensor> params = {at::randn({40}), at::randn({3, 5})}, plain = {params[0].clone(), params[1].clone()};
  std::vector<at::Tensor> averages = {at::zeros({40}), at::zeros({3, 5})},
                          squares = {at::zeros({40}), at::zeros({3, 5})};
  for (int step = 1; step <= 6; ++step) {
    std::vector<at::Tensor> grads;
    for (size_t i = 0; i < params.size(); ++i) {
      const at::Tensor grad = at::randn(params[i].sizes());
      grads.push_back(grad);
      const at::Tensor average = averages[i] * options.beta1 + grad * (1 - options.beta1),
                       square = squares[i] * options.beta2 + grad * grad * (1 - options.beta2);
      const at::Tensor root = (square / (1 - std::pow(options.beta2, step))).sqrt() + options.eps;
      plain[i] =
          plain[i] * (1 - 0.1 * options.weight_decay) - 0.1 / (1 - std::pow(options.beta1, step)) * average / root;
      averages[i] = average.to(at::kBFloat16).to(at::kFloat);
      squares[i] = square.to(at::kBFloat16).to(at::kFloat);
    }
    optimizer.step(params, grads, 0.1, options.weight_decay);
    for (size_t i = 0; i < params.size(); ++i) CHECK(relative_distance(params[i], plain[i]) < 1e-5);
  }
  CHECK(optimizer.state_bytes() == 2 * 2 * 55);
}

}  // namespace
}  // namespace hexad::modeling
