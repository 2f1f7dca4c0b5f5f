// Models for tensor-parallel layouts.
#pragma once
#include "tests/plugins/backend/tiny_model.hpp"

namespace backend_test {

// Sizes that 2 and 4 ranks divide, key/value heads that 4 ranks replicate, a vocabulary that none divides.
inline nlohmann::json divisible_model(const std::string& family) {
  nlohmann::json model = tiny_config(family);
  model["num_hidden_layers"] = 4;
  model["num_attention_heads"] = 4;
  model["num_key_value_heads"] = 2;
  model["intermediate_size"] = 28;
  return model;
}

// Latent attention in dense layers, with YaRN; `direct_queries`: from one matrix, not from a latent, and with biases.
inline nlohmann::json latent_model(bool direct_queries = false) {
  nlohmann::json model = divisible_model("deepseek_v3");
  model["first_k_dense_replace"] = model["num_hidden_layers"];
  model["rope_scaling"] = {{"type", "yarn"},
                           {"factor", 4},
                           {"original_max_position_embeddings", 16},
                           {"mscale", 0.8},
                           {"mscale_all_dim", 0.6}};
  if (direct_queries) model["q_lora_rank"] = nullptr, model["attention_bias"] = true;
  return model;
}

// The same attention with experts in all layers but the first: sigmoid routing in groups, a bias, shared experts.
inline nlohmann::json latent_expert_model() {
  nlohmann::json model = divisible_model("deepseek_v3");
  model["moe_intermediate_size"] = 8;
  return model;
}

}  // namespace backend_test
