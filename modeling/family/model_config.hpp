// What a Hugging Face config.json says about a decoder, in one form for all families.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "modeling/family/mla.hpp"
#include "modeling/family/moe_family.hpp"
#include "modeling/op/rope.hpp"

namespace hexad::modeling {

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
  std::vector<int64_t> eos_token_ids;  // config.json's; generation_config.json adds its own in load_model_config
  nlohmann::json original;             // the file as read: written back when the model is saved

  bool has_experts(int64_t layer) const { return moe && moe->layers.at(layer); }
};

// Reads a config.json in the published style (rope_theta, rope_scaling, torch_dtype) or in that of transformers 5
// (rope_parameters, dtype). `origin` names the source in errors. Throws Error: unknown model_type (lists the known
// ones), missing or contradictory sizes, unsupported rope type or activation.
ModelConfig parse_model_config(const nlohmann::json& json, const std::string& origin);

// Reads `dir`/config.json, and the eos ids of `dir`/generation_config.json when that exists.
ModelConfig load_model_config(const std::filesystem::path& dir);

}  // namespace hexad::modeling
