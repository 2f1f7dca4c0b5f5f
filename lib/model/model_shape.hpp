// The sizes of a model that rules about layouts compare, from its config.json.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::model {

struct ModelShape {
  std::optional<int64_t> num_attention_heads;
  std::optional<int64_t> num_key_value_heads;  // absent with multi-head latent attention, which has none
  std::optional<int64_t> num_layers;
  std::optional<int64_t> intermediate_size;
  std::optional<int64_t> num_experts;  // absent: a dense model
  std::optional<int64_t> moe_intermediate_size;
  std::optional<int64_t> experts_per_token;
  std::optional<int64_t> expert_groups;
  std::optional<int64_t> groups_per_token;
  std::optional<std::string> score_function;  // "softmax" or "sigmoid", of a model with experts
  bool latent_attention = false;              // DeepSeek's MLA
  bool shared_experts = false;
  bool linear_bias = false;  // biases in the feed-forward part
};

// Keys of the families here: Llama, Qwen2, Qwen3, Qwen3-MoE, Mixtral, DeepSeek-V3. Keys of the wrong kind count as
// absent: the backend refuses them when it loads the model.
ModelShape model_shape(const nlohmann::ordered_json& config);

}  // namespace hexad::model
