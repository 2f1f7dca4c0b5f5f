#include "lib/model/family/families.hpp"

#include "lib/model/error.hpp"

namespace hexad::model {

const std::vector<Family>& families() {
  using enum Presence;
  static const std::vector<Family> table = {
      {.model_type = "llama",
       .qkv_bias = configured,
       .output_bias = configured,
       .mlp_bias = configured,
       .max_position_embeddings = 2048,
       .bos_token_id = 1,
       .eos_token_id = 2},
      {.model_type = "mistral",
       .window = Window::every_layer,
       .num_kv_heads = 8,
       .max_position_embeddings = 131072,
       .bos_token_id = 1,
       .eos_token_id = 2},
      {.model_type = "qwen2",
       .qkv_bias = always,
       .window = Window::from_max_window_layers,
       .num_kv_heads = 32,
       .max_position_embeddings = 32768},
      {.model_type = "qwen3",
       .qkv_bias = configured,
       .output_bias = configured,
       .qk_norm = true,
       .window = Window::from_max_window_layers,
       .num_kv_heads = 32,
       .head_dim = 128,
       .max_position_embeddings = 32768},
      {.model_type = "qwen2_moe",
       .qkv_bias = opt_out,
       .window = Window::alternate,
       .num_kv_heads = 16,
       .max_position_embeddings = 32768,
       .moe = &kQwen2Moe},
      {.model_type = "qwen3_moe",
       .qkv_bias = configured,
       .output_bias = configured,
       .qk_norm = true,
       .window = Window::opt_in,
       .num_kv_heads = 4,
       .max_position_embeddings = 32768,
       .moe = &kQwen3Moe},
      {.model_type = "mixtral",
       .window = Window::if_set,
       .num_kv_heads = 8,
       .max_position_embeddings = 131072,
       .bos_token_id = 1,
       .eos_token_id = 2,
       .moe = &kMixtral,
       .rope_theta = 1e6,
       .rms_norm_eps = 1e-5},
      {.model_type = "deepseek_v3",
       .qkv_bias = configured,
       .output_bias = configured,
       .max_position_embeddings = 4096,
       .bos_token_id = 0,
       .eos_token_id = 1,
       .moe = &kDeepseekV3,
       .mla = true},
  };
  return table;
}

const Family& family_of(const std::string& model_type, const std::string& origin) {
  std::string known;
  for (const Family& family : families()) {
    if (family.model_type == model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  fail("{}: model_type '{}' is not supported; known families: {}", origin, model_type, known);
}

}  // namespace hexad::model
