// policy.megatron_cfg.optimizer.
#include <fmt/ranges.h>

#include <algorithm>

#include "modeling/error.hpp"
#include "plugins/megatron/settings/settings.hpp"

namespace hexad::megatron {
namespace {

std::string optimizer_key(const char* name) { return std::string("megatron_cfg.optimizer.") + name; }

// A type that Megatron's OptimizerConfig names; `wanted` lists those that this key takes.
at::ScalarType type_of(const sdk::Config& config, const char* name, const std::vector<std::string>& wanted) {
  const std::string type = config.get(optimizer_key(name).c_str(), "float32");
  if (std::find(wanted.begin(), wanted.end(), type) == wanted.end())
    modeling::fail("policy.megatron_cfg.optimizer.{} is '{}', wanted {}", name, type, fmt::join(wanted, ", "));
  return type == "float32"    ? at::kFloat
         : type == "bfloat16" ? at::kBFloat16
         : type == "float16"  ? at::kHalf
                              : at::kFloat8_e4m3fn;
}

// The precision-aware optimizer, and what of it lies on the host. SGD has no state that it could narrow.
void read_states(const sdk::Config& config, Settings& settings) {
  const bool adam = settings.optimizer.kind != modeling::OptimizerKind::sgd;
  settings.precision_aware = config.get(optimizer_key("use_precision_aware_optimizer").c_str(), true) && adam;
  settings.master_dtype = type_of(config, "main_params_dtype", {"float32", "float16"});
  settings.main_gradient_dtype = type_of(config, "main_grads_dtype", {"float32", "bfloat16"});
  settings.optimizer.average_type = type_of(config, "exp_avg_dtype", {"float32", "bfloat16", "float16", "fp8"});
  settings.optimizer.square_type = type_of(config, "exp_avg_sq_dtype", {"float32", "bfloat16", "float16", "fp8"});
  const bool offloads = config.get(optimizer_key("optimizer_cpu_offload").c_str(), false);
  const double fraction = config.get(optimizer_key("optimizer_offload_fraction").c_str(), 0.0);
  if (!offloads) return;
  settings.offload_fraction = fraction;
  if (fraction < 0 || fraction > 1)
    modeling::fail("policy.megatron_cfg.optimizer.optimizer_offload_fraction is {}, wanted 0 to 1", fraction);
}

// policy.optimizer, which a configuration of the other backend has: what it says holds where megatron_cfg.optimizer is
// silent.
modeling::OptimizerOptions common_optimizer(const sdk::Config& config) {
  const nlohmann::json kwargs = modeling::json_at(config, "optimizer.kwargs");
  modeling::OptimizerOptions options =
      modeling::parse_optimizer(config.get("optimizer.name", "torch.optim.AdamW"), kwargs);
  const bool has_rate = kwargs.is_object() && kwargs.contains("lr");
  if (!has_rate) options.lr = 5e-6;
  if (!kwargs.is_object() || !kwargs.contains("weight_decay")) options.weight_decay = 0.01;
  return options;
}

// Megatron's names for a type of training, which policy.precision says here; they may not say another.
void check_precision(const sdk::Config& config, at::ScalarType precision) {
  for (const auto& [name, type] : {std::pair("bf16", at::kBFloat16), std::pair("fp16", at::kHalf)}) {
    if (config.get(optimizer_key(name).c_str(), false) && precision != type)
      modeling::fail("policy.megatron_cfg.optimizer.{} is true, but policy.precision is {}: set it to false", name,
                     config.get("precision", "bfloat16"));
  }
}

}  // namespace

void read_optimizer(const sdk::Config& config, Settings& settings) {
  modeling::OptimizerOptions& optimizer = settings.optimizer = common_optimizer(config);
  double momentum = optimizer.momentum;
  if (const std::optional<std::string> name = config.find<std::string>(optimizer_key("optimizer").c_str())) {
    if (*name != "adam" && *name != "sgd")
      sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.megatron_cfg.optimizer.optimizer is '%s', wanted adam or sgd",
                name->c_str());
    optimizer.kind = *name == "adam" ? modeling::OptimizerKind::adamw : modeling::OptimizerKind::sgd;
    if (momentum == 0) momentum = 0.9;  // Megatron's
  }
  optimizer.lr = config.get(optimizer_key("lr").c_str(), optimizer.lr);
  optimizer.weight_decay = config.get(optimizer_key("weight_decay").c_str(), optimizer.weight_decay);
  optimizer.beta1 = config.get(optimizer_key("adam_beta1").c_str(), optimizer.beta1);
  optimizer.beta2 = config.get(optimizer_key("adam_beta2").c_str(), optimizer.beta2);
  optimizer.eps = config.get(optimizer_key("adam_eps").c_str(), optimizer.eps);
  momentum = config.find<double>(optimizer_key("sgd_momentum").c_str()).value_or(momentum);
  optimizer.momentum = optimizer.kind == modeling::OptimizerKind::sgd ? momentum : 0.0;
  check_precision(config, settings.compute_dtype);
  const bool shared = config.get(optimizer_key("use_distributed_optimizer").c_str(), true);
  settings.sharding = shared ? Sharding::optim : Sharding::no_shard;
  read_states(config, settings);
}

}  // namespace hexad::megatron
