// What a Hugging Face config.json says about a decoder, in one form for all families.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/model/family/config_fields.hpp"
#include "lib/model/family/mla_config.hpp"
#include "lib/model/family/moe_config.hpp"
#include "lib/model/family/rope_config.hpp"

namespace hexad::model {

struct ModelConfig {
  std::string family;  // model_type: llama, qwen3_moe ... (families.cpp)
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;       // divides num_heads
  int64_t head_dim = 0;           // with MLA: the rotated part alone
  int64_t intermediate_size = 0;  // of dense layers
  std::optional<MlaConfig> mla;   // queries, keys and values come from latents
  std::optional<MoeConfig> moe;   // at least one layer has experts
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  bool tie_word_embeddings = false;
  bool reward_head = false;  // a score a sequence (score.weight) in the place of logits; never tied
  bool qkv_bias = false;     // q_proj, k_proj, v_proj; with MLA the projections to latents
  bool output_bias = false;  // o_proj
  bool mlp_bias = false;
  bool qk_norm = false;                 // RMS norm over head_dim of q and k, before rope
  std::vector<int64_t> sliding_window;  // [num_layers]: keys a query sees, itself included; 0 = all
  int64_t max_position_embeddings = 0;
  double initializer_range = 0.02;
  std::string dtype;  // torch_dtype / dtype of the checkpoint ("bfloat16"); empty when absent
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;  // config.json's; modeling::load_model_config adds generation_config.json's
  nlohmann::json original;             // the file as read: written back when the model is saved

  bool has_experts(int64_t layer) const { return moe && moe->layers.at(layer); }
};

// Reads a config.json in the published style (rope_theta, rope_scaling, torch_dtype) or in that of transformers 5
// (rope_parameters, dtype). `origin` names the source in errors. Throws Error: unknown model_type (lists the known
// ones), missing or contradictory sizes, unsupported rope type or activation.
ModelConfig parse_model_config(const nlohmann::json& json, const std::string& origin);

// Of such a key: an id, a list of ids, or null.
std::vector<int64_t> token_ids(const ConfigFields& fields, const char* key);

}  // namespace hexad::model
