#include "lib/model/family/moe_config.hpp"

#include <algorithm>

#include "lib/model/error.hpp"

namespace hexad::model {

const MoeFamily kQwen2Moe = {.shared = "shared_expert.",
                             .shared_scale = "shared_expert_gate.weight",
                             .num_experts = 60,
                             .topk = 4,
                             .intermediate = 1408,
                             .shared_intermediate = 5632};
const MoeFamily kQwen3Moe = {.num_experts = 128, .topk = 8, .intermediate = 768};
const MoeFamily kMixtral = {.block = "block_sparse_moe.",
                            .gate = "w1",
                            .up = "w3",
                            .down = "w2",
                            .num_experts_key = "num_local_experts",
                            .intermediate_key = "intermediate_size",
                            .num_experts = 8,
                            .topk = 2};
const MoeFamily kDeepseekV3 = {.shared = "shared_experts.",
                               .expert_bias = "gate.e_score_correction_bias",
                               .num_experts_key = "n_routed_experts",
                               .num_experts = 256,
                               .topk = 8,
                               .intermediate = 2048};

namespace {

// decoder_sparse_step and mlp_only_layers (Qwen), first_k_dense_replace (DeepSeek); Mixtral has neither.
std::vector<bool> expert_layers(const MoeFamily& family, const ConfigFields& fields, int64_t num_layers) {
  std::vector<bool> layers(num_layers, true);
  if (&family == &kDeepseekV3) {
    const int64_t dense = fields.integer("first_k_dense_replace").value_or(3);
    std::fill_n(layers.begin(), std::clamp<int64_t>(dense, 0, num_layers), false);
    if (fields.integer("moe_layer_freq").value_or(1) != 1) fields.wrong("moe_layer_freq", "1");
  }
  if (&family != &kQwen2Moe && &family != &kQwen3Moe) return layers;
  const int64_t step = fields.size("decoder_sparse_step", 1);
  for (int64_t layer = 0; layer < num_layers; ++layer) layers[layer] = (layer + 1) % step == 0;
  if (!fields.has("mlp_only_layers")) return layers;
  const nlohmann::json& dense = fields.raw("mlp_only_layers");
  if (!dense.is_array()) fields.wrong("mlp_only_layers", "a list of layers");
  for (const nlohmann::json& layer : dense) {
    if (!layer.is_number_integer()) fields.wrong("mlp_only_layers", "a list of layers");
    if (layer >= 0 && layer < num_layers) layers[layer.get<int64_t>()] = false;
  }
  return layers;
}

void require_text(const ConfigFields& fields, const char* key, const std::string& wanted) {
  if (fields.text(key).value_or(wanted) != wanted) fields.wrong(key, ("\"" + wanted + "\"").c_str());
}

TopkOptions routing_of(const MoeFamily& family, const ConfigFields& fields) {
  TopkOptions options;
  options.topk = fields.size("num_experts_per_tok", family.topk);
  if (&family == &kDeepseekV3) {
    require_text(fields, "scoring_func", "sigmoid");
    require_text(fields, "topk_method", "noaux_tc");
    options.score = ScoreFunction::sigmoid;
    options.normalize = fields.boolean("norm_topk_prob").value_or(true);
    options.scaling_factor = fields.number("routed_scaling_factor").value_or(2.5);
    options.num_groups = fields.size("n_group", 8);
    options.group_topk = fields.size("topk_group", 4);
    options.group_score_experts = 2;
  } else {
    // Mixtral always renormalises, which is the softmax over the selected logits.
    options.pre_softmax = &family != &kMixtral && !fields.boolean("norm_topk_prob").value_or(false);
  }
  return options;
}

}  // namespace

MoeConfig parse_moe(const MoeFamily& family, const ConfigFields& fields, int64_t num_layers) {
  const auto size = [&](const char* key, int64_t otherwise) {
    return otherwise > 0 ? fields.size(key, otherwise) : fields.size(key);
  };
  MoeConfig config;
  config.family = &family;
  // transformers 5 saves Qwen's num_experts as num_local_experts.
  const char* count = fields.has(family.num_experts_key) ? family.num_experts_key : "num_local_experts";
  config.num_experts = fields.count(count, family.num_experts);
  config.intermediate_size = size(family.intermediate_key, family.intermediate);
  config.layers = expert_layers(family, fields, num_layers);
  if (family.shared_scale) {
    config.shared_intermediate_size = fields.size("shared_expert_intermediate_size", family.shared_intermediate);
  } else if (family.shared) {
    const int64_t shared = fields.integer("n_shared_experts").value_or(fields.mentions("n_shared_experts") ? 0 : 1);
    if (shared < 0 || shared > kMostCount) fields.wrong("n_shared_experts", "0 or more, as few as models have");
    config.shared_intermediate_size = shared * config.intermediate_size;
  }
  config.routing = routing_of(family, fields);
  try {
    check_topk(config.routing, config.num_experts);
  } catch (const Error& error) {
    fail("{}: {}", fields.origin(), error.what());
  }
  return config;
}

}  // namespace hexad::model
