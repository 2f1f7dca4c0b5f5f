// Keys of policy.megatron_cfg about experts, and policy.router_replay.
#include "plugins/megatron/settings/settings.hpp"

namespace hexad::megatron {
namespace {

// Keys of policy.megatron_cfg by their name in it.
struct MoeKeys {
  const sdk::Config& config;

  static std::string path(const char* name) { return std::string("megatron_cfg.") + name; }
  std::string text(const char* name, const char* otherwise) const { return config.get(path(name).c_str(), otherwise); }
  double number(const char* name) const { return config.get(path(name).c_str(), 0.0); }
  bool flag(const char* name, bool otherwise) const { return config.get(path(name).c_str(), otherwise); }
  int64_t size(const char* name, int64_t otherwise) const { return config.get(path(name).c_str(), otherwise); }
};

[[noreturn]] void wrong(const char* name, const std::string& got, const char* wanted) {
  sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.megatron_cfg.%s is %s, wanted %s", name, got.c_str(), wanted);
}

// What replaces the routing of the model's config.json.
void read_routing(const MoeKeys& keys, modeling::MoeConfig& moe) {
  modeling::TopkOptions& topk = moe.routing;
  const std::string score = keys.text("moe_router_score_function", "");
  if (score == "softmax") topk.score = modeling::ScoreFunction::softmax;
  if (score == "sigmoid") topk.score = modeling::ScoreFunction::sigmoid;
  if (!score.empty() && score != "softmax" && score != "sigmoid")
    wrong("moe_router_score_function", score, "softmax or sigmoid");
  topk.pre_softmax = keys.flag("moe_router_pre_softmax", topk.pre_softmax);
  topk.num_groups = keys.size("moe_router_num_groups", topk.num_groups);
  topk.group_topk = keys.size("moe_router_group_topk", topk.group_topk);
  modeling::check_topk(topk, moe.num_experts);
}

// Absent: fp64, as NeMo-RL's example says; null: the type of the model's computation.
std::optional<at::ScalarType> router_dtype(const MoeKeys& keys) {
  const std::optional<std::string> name =
      keys.config.get_nullable<std::string>(MoeKeys::path("moe_router_dtype").c_str(), "fp64");
  if (!name) return std::nullopt;
  if (*name == "fp64") return at::kDouble;
  if (*name == "fp32") return at::kFloat;
  wrong("moe_router_dtype", *name, "fp32, fp64 or null");
}

// What a balancing loss weighs where no key says it: Megatron-Bridge's values, by family (qwen3_moe_bridge.py,
// deepseek_v3_bridge.py, model_bridge.py).
double model_aux_coefficient(const nlohmann::json& model) {
  const std::string family = model.value("model_type", "");
  if (family == "qwen3_moe") return 1e-3;
  if (family == "deepseek_v3") return model.value("aux_loss_alpha", 1e-4);
  return model.value("router_aux_loss_coef", 0.0);
}

// A type and a coefficient, or as many of each; types without coefficients have the model's own.
void read_losses(const MoeKeys& keys, modeling::RouterConfig& router) {
  using nlohmann::json;
  const auto read = [&](const char* name) { return modeling::json_at(keys.config, MoeKeys::path(name).c_str()); };
  const auto list = [](const json& value) { return value.is_array() ? value : json::array({value}); };
  const json given = read("moe_router_load_balancing_type"), weights = read("moe_aux_loss_coeff");
  const json types = list(given.is_null() ? json("none") : given);
  json rates = list(weights);
  if (weights.is_null()) {
    const double own = model_aux_coefficient(modeling::model_document(keys.config));
    rates = json::array_t(types.size(), own);
  }
  if (types.size() != rates.size())
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.megatron_cfg.moe_aux_loss_coeff has %zu coefficients, wanted one for each of the %zu types of "
              "moe_router_load_balancing_type",
              rates.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string type = types[i].is_string() ? types[i].get<std::string>() : types[i].dump();
    double* const coefficient = type == "aux_loss"          ? &router.aux_loss
                                : type == "seq_aux_loss"    ? &router.seq_aux_loss
                                : type == "global_aux_loss" ? &router.global_aux_loss
                                                            : nullptr;
    if (!coefficient && type != "none")
      wrong("moe_router_load_balancing_type", type, "none, aux_loss, seq_aux_loss or global_aux_loss");
    if (!rates[i].is_number() || rates[i].get<double>() < 0) wrong("moe_aux_loss_coeff", rates[i].dump(), "0 or more");
    if (coefficient) *coefficient = rates[i].get<double>();
  }
  router.z_loss = keys.number("moe_z_loss_coeff");
  router.per_token_loss = keys.flag("calculate_per_token_loss", true);
}

void read_capacity(const MoeKeys& keys, modeling::RouterConfig& router) {
  router.capacity_factor = keys.config.find<double>(MoeKeys::path("moe_expert_capacity_factor").c_str());
  if (router.capacity_factor && !(*router.capacity_factor > 0))
    wrong("moe_expert_capacity_factor", std::to_string(*router.capacity_factor), "above 0");
  router.pad_to_capacity = keys.flag("moe_pad_expert_input_to_capacity", false);
  const std::string policy = keys.text("moe_token_drop_policy", "probs");
  if (policy != "probs" && policy != "position") wrong("moe_token_drop_policy", policy, "probs or position");
  router.drop_policy = policy == "probs" ? modeling::DropPolicy::probs : modeling::DropPolicy::position;
}

}  // namespace

MoeSettings read_moe_settings(const sdk::Config& config, modeling::ModelConfig& model) {
  MoeSettings settings;
  if (!model.moe) return settings;
  const MoeKeys keys{config};
  read_routing(keys, *model.moe);
  modeling::RouterConfig& router = settings.router;
  router.num_experts = model.moe->num_experts;
  router.topk = model.moe->routing;
  router.expert_bias = model.moe->family->expert_bias != nullptr;
  const bool has_bias = router.expert_bias;
  if (keys.flag("moe_router_enable_expert_bias", false) && !has_bias)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.megatron_cfg.moe_router_enable_expert_bias is true, but the routers of a %s model have no expert "
              "bias: set it to false",
              model.family.c_str());
  settings.bias_update_rate = keys.number("moe_router_bias_update_rate");
  read_losses(keys, router);
  read_capacity(keys, router);
  const modeling::Router checks_options(router);
  router.expert_bias = has_bias && settings.bias_update_rate > 0;  // otherwise nobody asks for the counts
  settings.router_dtype = router_dtype(keys);
  settings.freeze_router = keys.flag("freeze_moe_router", true);
  settings.gather_tokens = keys.text("moe_token_dispatcher_type", "alltoall") == "allgather";
  settings.overlap_shared = keys.flag("moe_shared_expert_overlap", false);
  if (settings.overlap_shared && settings.gather_tokens)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.megatron_cfg.moe_shared_expert_overlap is true, which needs moe_token_dispatcher_type: alltoall, "
              "got allgather");
  return settings;
}

}  // namespace hexad::megatron
