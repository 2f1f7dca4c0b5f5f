#include "modeling/parallel/optimizer.hpp"

#include "modeling/error.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

using nlohmann::json;

// torch.optim.SGD of the documentation, in fp64.
struct PlainSgd {
  OptimizerOptions o;
  at::Tensor buffer;
  void step(at::Tensor& param, const at::Tensor& given) {
    at::Tensor grad = (o.maximize ? -given : given) + o.weight_decay * param;
    if (o.momentum != 0) {
      buffer = buffer.defined() ? o.momentum * buffer + (1 - o.dampening) * grad : grad;
      grad = o.nesterov ? grad + o.momentum * buffer : buffer;
    }
    param = param - o.lr * grad;
  }
};

// torch.optim.Adam: the decay is part of the gradient.
struct PlainAdam {
  OptimizerOptions o;
  at::Tensor average, square, largest;
  int64_t steps = 0;
  void step(at::Tensor& param, const at::Tensor& given) {
    ++steps;
    const at::Tensor grad = (o.maximize ? -given : given) + o.weight_decay * param;
    if (!average.defined()) average = square = largest = at::zeros_like(param);
    average = o.beta1 * average + (1 - o.beta1) * grad;
    square = o.beta2 * square + (1 - o.beta2) * grad * grad;
    largest = at::maximum(largest, square);
    const double count = static_cast<double>(steps);
    const at::Tensor root = ((o.amsgrad ? largest : square) / (1 - std::pow(o.beta2, count))).sqrt() + o.eps;
    param = param - o.lr / (1 - std::pow(o.beta1, count)) * average / root;
  }
};

template <typename Plain>
void check_against_plain(const std::string& name, const json& kwargs) {
  at::manual_seed(3);
  CAPTURE(kwargs.dump());
  for (const at::Device device : test_devices()) {
    INFO("device " << device.str());
    std::vector<at::Tensor> params, plain, rounded;
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{33}, {5, 2}, {4096}})
      params.push_back(at::randn(shape).to(device));
    params.push_back(at::randn({132}).to(device).slice(0, 1));  // begins inside of a word of 16 bytes
    for (const at::Tensor& param : params) plain.push_back(param.to(at::kCPU, at::kDouble));
    // Steps that scale the gradients, and that write the parameters in bf16 beside.
    rounded = {at::Tensor(), at::empty_like(params[1], at::kBFloat16), at::empty_like(params[2], at::kHalf),
               at::empty_like(params[3], at::kBFloat16)};
    Optimizer optimizer(parse_optimizer(name, kwargs));
    std::vector<Plain> rules(params.size());
    for (Plain& rule : rules) rule.o = optimizer.options();
    for (int step = 0; step < 8; ++step) {
      const double scale = step % 3 == 0 ? 1 : 0.3;
      std::vector<at::Tensor> grads;
      for (size_t i = 0; i < params.size(); ++i) {
        grads.push_back(at::randn(params[i].sizes()).to(device));
        rules[i].step(plain[i], scale * grads[i].to(at::kCPU, at::kDouble));
      }
      const OptimizerOptions& options = optimizer.options();
      if (step < 2) {
        for (at::Tensor& grad : grads) grad.mul_(scale);
        optimizer.step(params, grads, options.lr, options.weight_decay);
        continue;
      }
      optimizer.step(params, grads, options.lr, options.weight_decay, scale, rounded);
      for (size_t i = 0; i < params.size(); ++i) {
        CHECK(relative_distance(params[i], plain[i]) < 1e-6);
        if (rounded[i].defined()) CHECK(rounded[i].equal(params[i].to(rounded[i].scalar_type())));
      }
    }
  }
}

TEST_CASE("SGD equals its definition") {
  for (const char* kwargs :
       {R"({"lr": 0.1})", R"({"lr": 0.1, "weight_decay": 0.2, "maximize": true})", R"({"lr": 0.1, "momentum": 0.9})",
        R"({"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1})",
        R"({"lr": 0.1, "momentum": 0.8, "nesterov": true})"})
    check_against_plain<PlainSgd>("torch.optim.SGD", json::parse(kwargs));
}

TEST_CASE("Adam equals its definition") {
  for (const char* kwargs : {R"({"lr": 0.1})", R"({"lr": 0.1, "weight_decay": 0.2, "betas": [0.5, 0.7]})",
                             R"({"lr": 0.1, "amsgrad": true, "eps": 0.01})", R"({"lr": 0.1, "maximize": true})"})
    check_against_plain<PlainAdam>("Adam", json::parse(kwargs));
}

TEST_CASE("an optimizer that goes on from saved state makes the same steps") {
  at::manual_seed(5);
  for (const char* name : {"AdamW", "Adam", "SGD"}) {
    const json kwargs = name == std::string("SGD") ? json{{"momentum", 0.9}} : json{{"amsgrad", true}};
    Optimizer first(parse_optimizer(name, kwargs)), second(parse_optimizer(name, kwargs));
    const std::vector<at::Tensor> a = {at::randn({9})}, grads = {at::randn({9})};
    first.step(a, grads, 0.1, 0.1);
    const std::vector<at::Tensor> b = {a[0].clone()};
    for (const std::string& state : first.state_names()) second.set_state(state, 0, b[0], first.state(state, 0, a[0]));
    second.set_steps(first.steps());
    first.step(a, grads, 0.1, 0.1);
    second.step(b, grads, 0.1, 0.1);
    CHECK(a[0].equal(b[0]));
  }
}

TEST_CASE("optimizer defaults are torch's") {
  const OptimizerOptions adamw = parse_optimizer("torch.optim.AdamW", nullptr);
  CHECK(adamw.lr == 1e-3);
  CHECK(adamw.weight_decay == 1e-2);
  CHECK(adamw.beta2 == 0.999);
  CHECK(parse_optimizer("torch.optim.Adam", nullptr).weight_decay == 0);
  const OptimizerOptions fused =
      parse_optimizer("transformer_engine.pytorch.optimizers.fused_adam.FusedAdam",
                      {{"lr", 1e-6}, {"master_weights", true}, {"exp_avg_dtype", "torch.bfloat16"}});
  CHECK(fused.kind == OptimizerKind::adamw);
  CHECK(fused.lr == 1e-6);
  CHECK(fused.weight_decay == 0);  // its own default
  CHECK(parse_optimizer("SGD", {{"fused", true}, {"foreach", nullptr}}).momentum == 0);
}

TEST_CASE("optimizer errors name the argument") {
  const auto fails = [](const char* name, const char* kwargs, const char* text) {
    CHECK_THROWS_WITH_AS(parse_optimizer(name, json::parse(kwargs)), doctest::Contains(text), Error);
  };
  fails("torch.optim.Lion", "{}", "optimizer 'torch.optim.Lion' is not available; known: torch.optim.AdamW");
  fails("AdamW", R"({"learning_rate": 1})", "unknown argument kwargs.learning_rate; known: amsgrad, betas, eps, lr");
  fails("AdamW", R"({"lr": "fast"})", "kwargs.lr must be a number, got \"fast\"");
  fails("AdamW", R"({"lr": -1})", "kwargs.lr is -1, wanted [0, inf)");
  fails("AdamW", R"({"betas": [0.9]})", "kwargs.betas must be two numbers");
  fails("AdamW", R"({"betas": [0.9, 1.0]})", "kwargs.betas are 0.9 and 1, wanted [0, 1)");
  fails("AdamW", R"({"amsgrad": 1})", "kwargs.amsgrad must be true or false, got 1");
  fails("AdamW", "[1]", "kwargs must be a mapping");
  fails("SGD", R"({"nesterov": true})", "nesterov needs a momentum and zero dampening");
}

}  // namespace
}  // namespace hexad::modeling
