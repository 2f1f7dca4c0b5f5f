#include "plugins/megatron/recompute.hpp"

#include <algorithm>

#include "modeling/backend/settings/model_settings.hpp"

namespace hexad::megatron {
namespace {

using Layers = RecomputeSettings::Layers;

Layers parse_method(const std::string& method) {
  if (method == "uniform") return Layers::uniform;
  if (method == "block") return Layers::block;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.megatron_cfg.recompute_method is '%s', wanted uniform or block",
            method.c_str());
}

bool* module_named(modeling::Recompute& modules, const std::string& name) {
  if (name == "core_attn") return &modules.core_attention;
  if (name == "mlp") return &modules.mlp;
  if (name == "moe") return &modules.moe;
  if (name == "layernorm") return &modules.norms;
  if (name == "moe_act") return &modules.expert_activation;
  if (name == "mla_up_proj") return &modules.latent_up;
  if (name == "shared_experts") return &modules.shared_experts;
  return nullptr;
}

modeling::Recompute parse_modules(const nlohmann::json& names) {
  modeling::Recompute modules;
  if (!names.is_array()) {
    modules.core_attention = true;
    return modules;
  }
  for (const nlohmann::json& name : names) {
    bool* const module = name.is_string() ? module_named(modules, name.get<std::string>()) : nullptr;
    if (!module)
      sdk::fail(HEXAD_INVALID_ARGUMENT,
                "policy.megatron_cfg.recompute_modules has %s, wanted core_attn, mlp, moe, layernorm, moe_act, "
                "mla_up_proj or shared_experts",
                name.dump().c_str());
    *module = true;
  }
  return modules;
}

}  // namespace

RecomputeSettings read_recompute(const sdk::Config& config) {
  RecomputeSettings settings;
  if (!config.get("megatron_cfg.activation_checkpointing", false)) return settings;
  const std::string granularity = config.get("megatron_cfg.recompute_granularity", "full");
  if (granularity == "selective") {
    settings.modules = parse_modules(modeling::json_at(config, "megatron_cfg.recompute_modules"));
    return settings;
  }
  if (granularity != "full")
    sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.megatron_cfg.recompute_granularity is '%s', wanted full or selective",
              granularity.c_str());
  settings.layers = parse_method(config.get("megatron_cfg.recompute_method", "uniform"));
  settings.num_layers = config.get<int64_t>("megatron_cfg.recompute_num_layers", 1);
  if (settings.num_layers < 1)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.megatron_cfg.recompute_num_layers is %lld, wanted at least 1",
              static_cast<long long>(settings.num_layers));
  return settings;
}

std::vector<LayerUnit> layer_units(const RecomputeSettings& settings, const model::Range& layers) {
  std::vector<LayerUnit> units;
  const int64_t each = settings.layers == Layers::uniform ? settings.num_layers : 1;
  for (int64_t begin = layers.begin; begin < layers.end; begin += each) {
    const bool again = settings.layers == Layers::uniform ||
                       (settings.layers == Layers::block && begin - layers.begin < settings.num_layers);
    units.push_back({{begin, std::min(begin + each, layers.end)}, again});
  }
  return units;
}

}  // namespace hexad::megatron
