#include "modeling/parallel/optimizer.hpp"

#include <ATen/Functions.h>
#include <fmt/ranges.h>

#include <set>

#include "modeling/error.hpp"
#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling {
namespace {

// Arguments of torch.optim and Transformer Engine that choose an implementation, or how states are kept: ours is one.
const std::set<std::string> kIgnored = {"foreach",
                                        "fused",
                                        "capturable",
                                        "differentiable",
                                        "decoupled_weight_decay",
                                        "master_weights",
                                        "store_param_remainders",
                                        "exp_avg_dtype",
                                        "exp_avg_sq_dtype"};

class Arguments {
 public:
  Arguments(const std::string& name, const nlohmann::json& kwargs) : name_(name), kwargs_(kwargs) {
    if (!kwargs.is_null() && !kwargs.is_object()) fail("optimizer {}: kwargs must be a mapping", name);
  }

  void number(const char* key, double& value, double low, double high) {
    known_.insert(key);
    const nlohmann::json* given = find(key);
    if (!given) return;
    if (!given->is_number()) fail("optimizer {}: kwargs.{} must be a number, got {}", name_, key, given->dump());
    value = given->get<double>();
    if (!(value >= low && value < high))
      fail("optimizer {}: kwargs.{} is {}, wanted [{}, {})", name_, key, value, low, high);
  }

  void flag(const char* key, bool& value) {
    known_.insert(key);
    const nlohmann::json* given = find(key);
    if (!given) return;
    if (!given->is_boolean()) fail("optimizer {}: kwargs.{} must be true or false, got {}", name_, key, given->dump());
    value = given->get<bool>();
  }

  void betas(double& beta1, double& beta2) {
    known_.insert("betas");
    const nlohmann::json* given = find("betas");
    if (!given) return;
    if (!given->is_array() || given->size() != 2 || !(*given)[0].is_number() || !(*given)[1].is_number())
      fail("optimizer {}: kwargs.betas must be two numbers, got {}", name_, given->dump());
    beta1 = (*given)[0].get<double>(), beta2 = (*given)[1].get<double>();
    if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1))
      fail("optimizer {}: kwargs.betas are {} and {}, wanted [0, 1)", name_, beta1, beta2);
  }

  void refuse_unknown() const {
    if (kwargs_.is_null()) return;
    for (const auto& [key, value] : kwargs_.items())
      if (!known_.count(key) && !kIgnored.count(key))
        fail("optimizer {}: unknown argument kwargs.{}; known: {}", name_, key, fmt::join(known_, ", "));
  }

 private:
  const nlohmann::json* find(const char* key) const {
    if (kwargs_.is_null() || !kwargs_.contains(key) || kwargs_.at(key).is_null()) return nullptr;
    return &kwargs_.at(key);
  }

  const std::string& name_;
  const nlohmann::json& kwargs_;
  std::set<std::string> known_;
};

constexpr double kAny = std::numeric_limits<double>::infinity();

}  // namespace

OptimizerOptions parse_optimizer(const std::string& name, const nlohmann::json& kwargs) {
  const std::string bare = name.substr(name.find_last_of('.') + 1);
  OptimizerOptions options;
  if (bare == "AdamW") {
    options.kind = OptimizerKind::adamw;
  } else if (bare == "Adam") {
    options.kind = OptimizerKind::adam;
    options.weight_decay = 0;
  } else if (bare == "FusedAdam") {  // Transformer Engine's, whose mode is AdamW's
    options.kind = OptimizerKind::adamw;
    options.weight_decay = 0;
  } else if (bare == "SGD") {
    options.kind = OptimizerKind::sgd;
    options.weight_decay = 0;
  } else {
    fail("optimizer '{}' is not available; known: torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD", name);
  }
  Arguments arguments(name, kwargs);
  arguments.number("lr", options.lr, 0, kAny);
  arguments.number("weight_decay", options.weight_decay, 0, kAny);
  arguments.flag("maximize", options.maximize);
  if (options.kind == OptimizerKind::sgd) {
    arguments.number("momentum", options.momentum, 0, kAny);
    arguments.number("dampening", options.dampening, -kAny, kAny);
    arguments.flag("nesterov", options.nesterov);
    if (options.nesterov && (options.momentum <= 0 || options.dampening != 0))
      fail("optimizer {}: nesterov needs a momentum and zero dampening", name);
  } else {
    arguments.betas(options.beta1, options.beta2);
    arguments.number("eps", options.eps, 0, kAny);
    arguments.flag("amsgrad", options.amsgrad);
  }
  arguments.refuse_unknown();
  return options;
}

std::vector<std::string> Optimizer::state_names() const {
  if (options_.kind == OptimizerKind::sgd)
    return options_.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
  std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
  if (options_.amsgrad) names.push_back("max_exp_avg_sq");
  return names;
}

at::ScalarType Optimizer::type_of(const std::string& name) const {
  return name == "exp_avg" ? options_.average_type : name == "momentum_buffer" ? at::kFloat : options_.square_type;
}

StateTensor& Optimizer::kept(const std::string& name, size_t i, const at::Tensor& param) {
  std::vector<StateTensor>& list = state_[name];
  if (list.size() <= i) list.resize(i + 1);
  if (!list[i].defined()) list[i] = StateTensor(param, type_of(name));
  return list[i];
}

at::Tensor Optimizer::state(const std::string& name, size_t i, const at::Tensor& param) {
  return kept(name, i, param).load();
}

void Optimizer::set_state(const std::string& name, size_t i, const at::Tensor& param, const at::Tensor& value) {
  kept(name, i, param).store(value.to(at::TensorOptions(param.device()).dtype(at::kFloat)));
}

void Optimizer::step(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, double lr,
                     double weight_decay, double grad_scale, const std::vector<at::Tensor>& rounded) {
  begin_step();
  if (one_pass(params)) return update_in_one_pass(params, grads, lr, weight_decay, grad_scale, rounded);
  if (grad_scale != 1)
    for (const at::Tensor& grad : grads) at::Tensor(grad).mul_(grad_scale);
  if (wide_states()) {
    update(0, params, grads, lr, weight_decay);
  } else {
    for (size_t i = 0; i < params.size(); ++i)  // one at a time is wide
      update(i, {params[i]}, {grads[i]}, lr, weight_decay);
  }
  for (size_t i = 0; i < rounded.size(); ++i)
    if (rounded[i].defined()) at::Tensor(rounded[i]).copy_(params[i]);
}

bool Optimizer::one_pass(const std::vector<at::Tensor>& params) const {
  const bool flat = std::all_of(params.begin(), params.end(), [](const at::Tensor& param) {
    return cuda::has_kernels(param) && param.is_contiguous();
  });
  return flat && wide_states() && options_.kind != OptimizerKind::sgd && !options_.amsgrad;
}

void Optimizer::update_in_one_pass(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads,
                                   double lr, double decay, double grad_scale, const std::vector<at::Tensor>& rounded) {
  const cuda::AdamStep step{steps_,           lr,    options_.beta1, options_.beta2,
                            options_.eps,     decay, grad_scale,     options_.kind == OptimizerKind::adamw,
                            options_.maximize};
  for (size_t i = 0; i < params.size(); ++i)
    cuda::adam_step(step, params[i], grads[i], state("exp_avg", i, params[i]), state("exp_avg_sq", i, params[i]),
                    i < rounded.size() ? rounded[i] : at::Tensor());
}

void Optimizer::update(size_t first, const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads,
                       double lr, double weight_decay) {
  if (params.empty()) return;
  States states;
  for (const std::string& name : state_names())
    for (size_t i = 0; i < params.size(); ++i) states[name].push_back(state(name, first + i, params[i]));
  options_.kind == OptimizerKind::sgd ? update_sgd(params, grads, states, lr, weight_decay)
                                      : update_adam(params, grads, states, lr, weight_decay);
  for (const auto& [name, list] : states)
    for (size_t i = 0; i < list.size(); ++i) kept(name, first + i, params[i]).store(list[i]);
}

void Optimizer::update_adam(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads,
                            const States& states, double lr, double decay) {
  const std::vector<at::Tensor> largest = options_.amsgrad ? states.at("max_exp_avg_sq") : std::vector<at::Tensor>{};
  const at::Tensor step = at::full({}, steps_, params.front().options().dtype(at::kFloat));
  const std::vector<at::Tensor> steps(params.size(), step);
  const auto update =
      options_.kind == OptimizerKind::adamw ? &at::_ops::_fused_adamw_::call : &at::_ops::_fused_adam_::call;
  update(params, grads, states.at("exp_avg"), states.at("exp_avg_sq"), largest, steps, lr, options_.beta1,
         options_.beta2, decay, options_.eps, options_.amsgrad, options_.maximize, std::nullopt, std::nullopt);
}

void Optimizer::update_sgd(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads,
                           const States& states, double lr, double decay) {
  const std::vector<at::Tensor> momenta =
      options_.momentum != 0 ? states.at("momentum_buffer") : std::vector<at::Tensor>{};
  at::_fused_sgd_(params, grads, momenta, decay, options_.momentum, lr, options_.dampening, options_.nesterov,
                  options_.maximize, /*is_first_step=*/steps_ == 1);
}

int64_t Optimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, list] : state_)
    for (const StateTensor& state : list) bytes += state.bytes();
  return bytes;
}

void Optimizer::move_to(at::Device device) {
  for (auto& [name, list] : state_)
    for (StateTensor& state : list) state.move_to(device);
}

}  // namespace hexad::modeling
