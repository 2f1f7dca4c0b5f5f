// Rule 30: recomputing activations.
#include "core/base/joined.hpp"
#include "core/base/suggest.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kModules = "recompute_modules";
const char* const kNumLayers = "recompute_num_layers";
const std::vector<std::string> kKnown = {"core_attn", "mlp",         "moe",           "layernorm",
                                         "moe_act",   "mla_up_proj", "shared_experts"};

std::vector<std::string> modules(const MegatronRules& r) {
  std::vector<std::string> result;
  const Node* value = r.c.root().find(r.path(kModules));
  if (!value || !value->is_list()) return result;
  for (const Node& item : value->items()) {
    if (item.is_string()) result.push_back(item.as_string());
  }
  return result;
}

void check_full(const MegatronRules& r) {
  const std::optional<int64_t> layers = r.integer(kNumLayers);
  if (layers && !r.given("recompute_method")) {
    r.error("recompute_method",
            fmt::format("recompute_num_layers {} needs uniform or block, got none; nearest: uniform", *layers));
  }
  if (r.given(kModules)) {
    r.notice(kModules, "has no effect: recompute_granularity full recomputes whole layers; selective reads the list");
  }
  if (!layers || !r.model.num_layers) return;
  const int64_t most = std::max<int64_t>(*r.model.num_layers / (r.pp * r.virtual_stages()), 1);
  if (*layers > most) {
    r.error(kNumLayers, fmt::format("got {}, wanted 1 to {}, the layers of a stage; nearest: {}", *layers, most, most));
  }
}

void check_selective(const MegatronRules& r) {
  for (const char* key : {"recompute_method", kNumLayers}) {
    if (r.given(key)) {
      r.error(key, "goes with recompute_granularity full, got selective, which reads recompute_modules; nearest: null");
    }
  }
}

void check_modules(const MegatronRules& r) {
  for (const std::string& module : modules(r)) {
    if (std::ranges::find(kKnown, module) == kKnown.end()) {
      r.error(kModules, fmt::format("there is no module '{}'{}; there are {}", module, did_you_mean(module, kKnown),
                                    joined(kKnown)));
    }
    if (module == "moe_act" && !r.flag("moe_grouped_gemm")) {
      r.error(kModules, "moe_act needs moe_grouped_gemm: true; nearest: without moe_act");
    }
    if (module == "mla_up_proj" && r.model.num_layers && !r.model.latent_attention) {
      r.error(kModules, "mla_up_proj needs a model with multi-head latent attention; nearest: core_attn");
    }
    if (module == "shared_experts" && r.flag("moe_shared_expert_overlap")) {
      r.error(kModules, "shared_experts does not go with moe_shared_expert_overlap: true; nearest: false");
    }
  }
}

}  // namespace

void check_megatron_recompute(const MegatronRules& r) {
  check_modules(r);
  if (!r.flag("activation_checkpointing")) {
    for (const char* key : {"recompute_method", kNumLayers, kModules}) {
      if (r.given(key)) r.notice(key, "has no effect without activation_checkpointing: true");
    }
    return;
  }
  if (r.text("recompute_granularity").value_or("full") == "full") {
    check_full(r);
  } else {
    check_selective(r);
  }
}

}  // namespace hexad::config
