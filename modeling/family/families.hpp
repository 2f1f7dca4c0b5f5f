// What distinguishes the dense families: one row each, over one transformer. Values that a config.json may leave out
// have the defaults of transformers' configuration classes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hexad::modeling {

enum class Presence { never, always, configured };
enum class Window { none, every_layer, from_max_window_layers };

struct Family {
  const char* model_type;
  Presence qkv_bias;     // configured: attention_bias
  Presence output_bias;  // configured: attention_bias
  Presence mlp_bias;     // configured: mlp_bias
  bool qk_norm;
  Window window;
  int64_t num_kv_heads;  // 0: num_attention_heads
  int64_t head_dim;      // 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings;
  std::optional<int64_t> bos_token_id, eos_token_id;
};

const std::vector<Family>& families();

// Throws Error with the known families.
const Family& family_of(const std::string& model_type, const std::string& origin);

}  // namespace hexad::modeling
