// What distinguishes the families: one row each, over one transformer. Values that a config.json may leave out have the
// defaults of transformers' configuration classes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/family/moe_config.hpp"

namespace hexad::model {

// configured: absent unless the key says true. opt_out: present unless the key (qkv_bias) says false.
enum class Presence { never, always, configured, opt_out };
// Which layers slide: every_layer: sliding_window, unless it is null. if_set: those that sliding_window, if present.
// opt_in: every layer, if use_sliding_window. from_max_window_layers, alternate: if use_sliding_window, the layers of
// layer_types; without it those from max_window_layers on, or every other one below it.
enum class Window { none, every_layer, if_set, opt_in, from_max_window_layers, alternate };

struct Family {
  const char* model_type;
  Presence qkv_bias = Presence::never;     // configured: attention_bias
  Presence output_bias = Presence::never;  // configured: attention_bias
  Presence mlp_bias = Presence::never;     // configured: mlp_bias
  bool qk_norm = false;
  Window window = Window::none;
  int64_t num_kv_heads = 0;  // 0: num_attention_heads
  int64_t head_dim = 0;      // 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings;
  std::optional<int64_t> bos_token_id = {}, eos_token_id = {};
  const MoeFamily* moe = nullptr;  // has experts
  bool mla = false;                // multi-head latent attention
  double rope_theta = 10000.0;
  double rms_norm_eps = 1e-6;
};

const std::vector<Family>& families();

// Throws Error with the known families.
const Family& family_of(const std::string& model_type, const std::string& origin);

}  // namespace hexad::model
