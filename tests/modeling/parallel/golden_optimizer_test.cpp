// AdamW, Adam and gradient clipping against recorded runs of torch.optim, clip_grad_norm_ and Megatron's clip.
#include <doctest/doctest.h>

#include "modeling/parallel/grad_norm.hpp"
#include "modeling/parallel/optimizer.hpp"
#include "tests/modeling/support/golden_tensor.hpp"

namespace hexad::modeling {
namespace {

using golden::Json;

std::vector<at::Tensor> tensors(const Json& list) {
  std::vector<at::Tensor> result;
  for (const Json& json : list) result.push_back(to_tensor(json));
  return result;
}

void check_tensors(const std::vector<at::Tensor>& got, const Json& want, double relative, double absolute) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const at::Tensor flat = got[i].to(at::kDouble).flatten();
    golden::check_close({flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()}, golden::tensor(want[i]).data,
                        relative, absolute);
  }
}

Optimizer make_optimizer(const Json& config) {
  nlohmann::json kwargs;
  for (const char* key : {"lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"})
    if (config.contains(key)) kwargs[key] = config.at(key);
  OptimizerOptions options = parse_optimizer("torch.optim." + config.at("optimizer").get<std::string>(), kwargs);
  if (config.at("dtype") == "bf16") options.average_type = options.square_type = at::kBFloat16;
  return Optimizer(options);
}

double largest(const std::vector<at::Tensor>& list, double otherwise) {
  for (const at::Tensor& tensor : list) otherwise = std::max(otherwise, tensor.abs().max().item<double>());
  return otherwise;
}

// Where terms cancel, the error is that of the largest term: of the parameters, the gradients, or their squares.
struct Bound {
  double relative, absolute, param = 0, grad = 0;

  double of_params() const { return absolute * param; }
  double of_state(const std::string& name) const { return absolute * (name == "exp_avg" ? grad : grad * grad); }
};

// torch rounds a bf16 parameter and its state after every elementary operation and we do once a step: apart they
// drift by a few units in the last place (2^-8), as torch's own two implementations do.
Bound bound_of(const Json& config) { return config.at("dtype") == "bf16" ? Bound{0.05, 0.008} : Bound{2e-6, 1e-6}; }

void check_optimizer(const Json& test_case) {
  const Json &config = test_case.at("config"), &expected = test_case.at("expected");
  const bool master = config.at("dtype") == "bf16_with_f32_master", narrow = config.at("dtype") == "bf16";
  Optimizer optimizer = make_optimizer(config);
  std::vector<at::Tensor> params = tensors(test_case.at("inputs").at("params"));
  const auto round = [](at::Tensor& param) { param = param.to(at::kBFloat16).to(at::kFloat); };
  for (at::Tensor& param : params)
    if (master || narrow) round(param);  // the master is made of the rounded model
  Bound bound = bound_of(config);
  bound.param = largest(params, 0);
  const Json& grads_by_step = test_case.at("inputs").at("grads_by_step");
  for (size_t step = 0; step < grads_by_step.size(); ++step) {
    INFO("step " << step);
    std::vector<at::Tensor> grads = tensors(grads_by_step[step]);
    for (at::Tensor& grad : grads)
      if (master || narrow) grad = grad.to(at::kFloat);
    bound.grad = largest(grads, bound.grad);
    const Json& rates = config.at("lr_by_step");
    const double lr = rates.is_null() ? optimizer.options().lr : rates[step].get<double>();
    optimizer.step(params, grads, lr, optimizer.options().weight_decay);
    for (at::Tensor& param : params)
      if (narrow) round(param);
    check_tensors(params, expected.at("params_by_step")[step], bound.relative, bound.of_params());
    if (!master) continue;
    std::vector<at::Tensor> rounded;
    for (const at::Tensor& param : params) rounded.push_back(param.to(at::kBFloat16));
    check_tensors(rounded, expected.at("model_params_by_step")[step], 0.0079,
                  bound.of_params());  // the last bit: either way
  }
  CHECK(static_cast<double>(optimizer.steps()) == golden::number(expected.at("step")[0]));
  for (const std::string& name : optimizer.state_names()) {
    std::vector<at::Tensor> states;
    for (size_t i = 0; i < params.size(); ++i) states.push_back(optimizer.state(name, i, params[i]));
    check_tensors(states, expected.at(name), bound.relative, bound.of_state(name));
  }
}

void check_clip(const Json& test_case) {
  const Json &config = test_case.at("config"), &expected = test_case.at("expected");
  std::vector<at::Tensor> grads = tensors(test_case.at("inputs").at("grads"));
  const double max_norm = golden::number(config.at(config.contains("max_norm") ? "max_norm" : "clip_grad"));
  const double order = config.contains("norm_type") ? golden::number(config.at("norm_type")) : 2.0;
  const double norm = global_grad_norm(grads, order, Group());
  if (expected.contains("error")) {  // torch raises, we report the norm: the step is then skipped
    CHECK_FALSE(std::isfinite(norm));
    return;
  }
  golden::check_close({norm}, {golden::number(expected.at("total_norm"))}, 1e-6, 0);
  for (at::Tensor& grad : grads) grad.mul_(clip_coefficient(norm, max_norm));
  check_tensors(grads, expected.at("grads"), 1e-6, 0);
}

auto with_prefix(const std::string& wanted) {
  return [wanted](const Json& test_case) { return golden::prefix(test_case) == wanted; };
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("optimizer: updates") { golden::for_each_case("optimizer", check_optimizer, with_prefix("adamw")); }
  TEST_CASE("optimizer: clipping as torch does") {
    golden::for_each_case("optimizer", check_clip, with_prefix("clip_torch"));
  }
  TEST_CASE("optimizer: clipping as Megatron does") {
    golden::for_each_case("optimizer", check_clip, with_prefix("clip_megatron"));
  }
}

}  // namespace hexad::modeling
