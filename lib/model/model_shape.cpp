#include "lib/model/model_shape.hpp"

namespace hexad::model {
namespace {

using Json = nlohmann::ordered_json;

std::optional<int64_t> integer(const Json& config, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (config.contains(name) && config[name].is_number_integer()) return config[name].get<int64_t>();
  }
  return std::nullopt;
}

bool flag(const Json& config, const char* name) {
  return config.contains(name) && config[name].is_boolean() && config[name].get<bool>();
}

}  // namespace

ModelShape model_shape(const Json& config) {
  ModelShape shape;
  shape.num_attention_heads = integer(config, {"num_attention_heads"});
  shape.latent_attention = integer(config, {"kv_lora_rank"}).has_value();
  if (!shape.latent_attention) {
    shape.num_key_value_heads = integer(config, {"num_key_value_heads", "num_attention_heads"});
  }
  shape.num_layers = integer(config, {"num_hidden_layers"});
  shape.intermediate_size = integer(config, {"intermediate_size"});
  shape.num_experts = integer(config, {"num_experts", "num_local_experts", "n_routed_experts"});
  if (shape.num_experts == 0) shape.num_experts.reset();
  shape.linear_bias = flag(config, "mlp_bias");
  if (!shape.num_experts) return shape;
  shape.moe_intermediate_size = integer(config, {"moe_intermediate_size", "intermediate_size"});
  shape.experts_per_token = integer(config, {"num_experts_per_tok"});
  shape.expert_groups = integer(config, {"n_group"});
  shape.groups_per_token = integer(config, {"topk_group"});
  shape.score_function = "softmax";
  if (config.contains("scoring_func") && config["scoring_func"].is_string()) {
    shape.score_function = config["scoring_func"].get<std::string>();
  } else if (config.value("model_type", Json()) == "deepseek_v3") {
    shape.score_function = "sigmoid";
  }
  shape.shared_experts = integer(config, {"n_shared_experts", "shared_expert_intermediate_size"}).value_or(0) > 0;
  return shape;
}

}  // namespace hexad::model
