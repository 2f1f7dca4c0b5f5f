#include "lib/model/family/weight_table.hpp"

#include <string_view>

namespace hexad::model {
namespace {

// Adds the weights of one layer.
class LayerTable {
 public:
  LayerTable(const ModelConfig& config, int64_t layer, std::vector<WeightInfo>& table)
      : c_(config), layer_(layer), unit_("layers." + std::to_string(layer)), table_(table) {}

  void add_all() {
    add("input_layernorm.weight", {c_.hidden_size});
    c_.mla ? add_latent_attention() : add_attention();
    add("post_attention_layernorm.weight", {c_.hidden_size});
    if (c_.has_experts(layer_)) return add_experts();
    add_linears("mlp.", {{"gate_proj", c_.intermediate_size}, {"up_proj", c_.intermediate_size}}, c_.mlp_bias);
    add_linear("mlp.down_proj", c_.hidden_size, c_.intermediate_size, c_.mlp_bias);
  }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, bool trainable = true) {
    table_.push_back({"model." + unit_ + "." + name, std::move(shape), unit_, trainable});
  }
  void add_linear(const std::string& name, int64_t out, int64_t in, bool bias = false) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  // Several over the hidden state: their weights lie side by side, and their biases, so that they may run as one
  // product.
  void add_linears(const std::string& prefix, const std::vector<std::pair<std::string, int64_t>>& out, bool bias) {
    for (const auto& [name, size] : out) add(prefix + name + ".weight", {size, c_.hidden_size});
    for (const auto& [name, size] : out)
      if (bias) add(prefix + name + ".bias", {size});
  }

  void add_attention() {
    const int64_t query = c_.num_heads * c_.head_dim, key = c_.num_kv_heads * c_.head_dim;
    add_linears("self_attn.", {{"q_proj", query}, {"k_proj", key}, {"v_proj", key}}, c_.qkv_bias);
    add_linear("self_attn.o_proj", c_.hidden_size, query, c_.output_bias);
    if (!c_.qk_norm) return;
    add("self_attn.q_norm.weight", {c_.head_dim});
    add("self_attn.k_norm.weight", {c_.head_dim});
  }

  void add_latent_attention() {
    const MlaConfig& m = *c_.mla;
    const int64_t query = c_.num_heads * m.qk_head_dim();
    if (m.q_lora_rank == 0) {
      add_linear("self_attn.q_proj", query, c_.hidden_size);
    } else {
      add_linear("self_attn.q_a_proj", m.q_lora_rank, c_.hidden_size, c_.qkv_bias);
      add("self_attn.q_a_layernorm.weight", {m.q_lora_rank});
      add_linear("self_attn.q_b_proj", query, m.q_lora_rank);
    }
    add_linear("self_attn.kv_a_proj_with_mqa", m.kv_lora_rank + m.rope_head_dim, c_.hidden_size, c_.qkv_bias);
    add("self_attn.kv_a_layernorm.weight", {m.kv_lora_rank});
    add_linear("self_attn.kv_b_proj", c_.num_heads * (m.nope_head_dim + m.v_head_dim), m.kv_lora_rank);
    add_linear("self_attn.o_proj", c_.hidden_size, c_.num_heads * m.v_head_dim, c_.output_bias);
  }

  void add_experts() {
    const MoeConfig& m = *c_.moe;
    const MoeFamily& names = *m.family;
    const std::string block = names.block;
    add(block + "gate.weight", {m.num_experts, c_.hidden_size});
    if (names.expert_bias) add(block + names.expert_bias, {m.num_experts}, /*trainable=*/false);
    for (int64_t e = 0; e < m.num_experts; ++e) {
      const std::string expert = block + "experts." + std::to_string(e) + ".";
      add_linear(expert + names.gate, m.intermediate_size, c_.hidden_size);
      add_linear(expert + names.up, m.intermediate_size, c_.hidden_size);
      add_linear(expert + names.down, c_.hidden_size, m.intermediate_size);
    }
    if (m.shared_intermediate_size == 0) return;
    const std::string shared = block + names.shared;
    add_linear(shared + "gate_proj", m.shared_intermediate_size, c_.hidden_size);
    add_linear(shared + "up_proj", m.shared_intermediate_size, c_.hidden_size);
    add_linear(shared + "down_proj", c_.hidden_size, m.shared_intermediate_size);
    if (names.shared_scale) add(block + names.shared_scale, {1, c_.hidden_size});
  }

  const ModelConfig& c_;
  int64_t layer_;
  std::string unit_;
  std::vector<WeightInfo>& table_;
};

}  // namespace

std::optional<int64_t> expert_of(const WeightInfo& info) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t found = info.hf_name.find(kExperts);
  if (found == std::string::npos) return std::nullopt;
  return std::stoll(info.hf_name.substr(found + kExperts.size()));
}

std::vector<WeightInfo> weight_table(const ModelConfig& config) {
  std::vector<WeightInfo> table;
  table.push_back({kEmbeddingName, {config.vocab_size, config.hidden_size}, "embed"});
  for (int64_t layer = 0; layer < config.num_layers; ++layer) LayerTable(config, layer, table).add_all();
  table.push_back({kFinalNormName, {config.hidden_size}, "head"});
  if (config.reward_head) {
    table.push_back({kScoreName, {1, config.hidden_size}, "head"});
  } else if (!config.tie_word_embeddings) {
    table.push_back({head_weight_name(config), {config.vocab_size, config.hidden_size}, "head"});
  }
  return table;
}

std::vector<std::string> weight_units(const ModelConfig& config) {
  std::vector<std::string> units = {"embed"};
  for (int64_t layer = 0; layer < config.num_layers; ++layer) units.push_back("layers." + std::to_string(layer));
  units.push_back("head");
  return units;
}

bool is_router(const WeightInfo& info) { return info.hf_name.ends_with(".gate.weight"); }

const char* head_weight_name(const ModelConfig& config) {
  if (config.reward_head) return kScoreName;
  return config.tie_word_embeddings ? kEmbeddingName : "lm_head.weight";
}

}  // namespace hexad::model
