// policy.megatron_cfg.optimizer.
#include <fmt/ranges.h>

#include <algorithm>

#include "modeling/error.hpp"
#include "plugins/megatron/settings.hpp"

namespace hexad::megatron {
namespace {

// A type that Megatron's OptimizerConfig names; `wanted` lists those that this key takes.
at::ScalarType type_of(const nlohmann::json& own, const char* key, const std::vector<std::string>& wanted) {
  const std::string name = own.value(key, "float32");
  if (std::find(wanted.begin(), wanted.end(), name) == wanted.end())
    modeling::fail("policy.megatron_cfg.optimizer.{} is '{}', wanted {}", key, name, fmt::join(wanted, ", "));
  return name == "float32"    ? at::kFloat
         : name == "bfloat16" ? at::kBFloat16
         : name == "float16"  ? at::kHalf
                              : at::kFloat8_e4m3fn;
}

// The precision-aware optimizer, and what of it lies on the host.
void read_states(const nlohmann::json& own, Settings& settings) {
  settings.precision_aware = own.value("use_precision_aware_optimizer", false);
  settings.master_dtype = type_of(own, "main_params_dtype", {"float32", "float16"});
  settings.main_gradient_dtype = type_of(own, "main_grads_dtype", {"float32", "bfloat16"});
  settings.optimizer.average_type = type_of(own, "exp_avg_dtype", {"float32", "bfloat16", "float16", "fp8"});
  settings.optimizer.square_type = type_of(own, "exp_avg_sq_dtype", {"float32", "bfloat16", "float16", "fp8"});
  if (!own.value("optimizer_cpu_offload", false)) return;
  settings.offload_fraction = own.value("optimizer_offload_fraction", 0.0);
  if (settings.offload_fraction < 0 || settings.offload_fraction > 1)
    modeling::fail("policy.megatron_cfg.optimizer.optimizer_offload_fraction is {}, wanted 0 to 1",
                   settings.offload_fraction);
}

}  // namespace

void read_optimizer(const sdk::Config& config, Settings& settings) {
  const nlohmann::json own = modeling::json_at(config, "megatron_cfg.optimizer");
  if (!own.is_object()) {
    settings.optimizer = modeling::parse_optimizer(config.get("optimizer.name", "torch.optim.AdamW"),
                                                   modeling::json_at(config, "optimizer.kwargs"));
    return;
  }
  const std::string name = own.value("optimizer", "adam");
  if (name != "adam" && name != "sgd")
    sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.megatron_cfg.optimizer.optimizer is '%s', wanted adam or sgd",
              name.c_str());
  modeling::OptimizerOptions& optimizer = settings.optimizer;
  optimizer.kind = name == "adam" ? modeling::OptimizerKind::adamw : modeling::OptimizerKind::sgd;
  optimizer.lr = own.value("lr", 1e-3);
  optimizer.weight_decay = own.value("weight_decay", 0.01);
  optimizer.beta1 = own.value("adam_beta1", 0.9);
  optimizer.beta2 = own.value("adam_beta2", 0.999);
  optimizer.eps = own.value("adam_eps", 1e-8);
  optimizer.momentum = name == "sgd" ? own.value("sgd_momentum", 0.9) : 0.0;
  settings.sharding = own.value("use_distributed_optimizer", true) ? Sharding::optim : Sharding::no_shard;
  settings.decay_matrices_only = true;
  read_states(own, settings);
}

}  // namespace hexad::megatron
