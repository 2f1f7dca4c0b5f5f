#include "modeling/family/weight_table.hpp"

#include <ATen/Functions.h>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

void add_layer(const ModelConfig& c, int64_t layer, std::vector<WeightInfo>& table) {
  const std::string unit = "layers." + std::to_string(layer);
  const std::string prefix = "model." + unit + ".";
  const int64_t query = c.num_heads * c.head_dim, key = c.num_kv_heads * c.head_dim;
  const auto add = [&](const char* name, std::vector<int64_t> shape) {
    table.push_back({prefix + name, std::move(shape), unit});
  };
  const auto add_linear = [&](const std::string& name, int64_t out, int64_t in, bool bias) {
    add((name + ".weight").c_str(), {out, in});
    if (bias) add((name + ".bias").c_str(), {out});
  };
  add("input_layernorm.weight", {c.hidden_size});
  add_linear("self_attn.q_proj", query, c.hidden_size, c.qkv_bias);
  add_linear("self_attn.k_proj", key, c.hidden_size, c.qkv_bias);
  add_linear("self_attn.v_proj", key, c.hidden_size, c.qkv_bias);
  add_linear("self_attn.o_proj", c.hidden_size, query, c.output_bias);
  if (c.qk_norm) {
    add("self_attn.q_norm.weight", {c.head_dim});
    add("self_attn.k_norm.weight", {c.head_dim});
  }
  add("post_attention_layernorm.weight", {c.hidden_size});
  add_linear("mlp.gate_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
  add_linear("mlp.up_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
  add_linear("mlp.down_proj", c.hidden_size, c.intermediate_size, c.mlp_bias);
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::vector<WeightInfo> weight_table(const ModelConfig& config) {
  std::vector<WeightInfo> table;
  table.push_back({kEmbeddingName, {config.vocab_size, config.hidden_size}, "embed"});
  for (int64_t layer = 0; layer < config.num_layers; ++layer) add_layer(config, layer, table);
  table.push_back({kFinalNormName, {config.hidden_size}, "head"});
  if (!config.tie_word_embeddings) {
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

const char* head_weight_name(const ModelConfig& config) {
  return config.tie_word_embeddings ? kEmbeddingName : "lm_head.weight";
}

at::Tensor initial_weight(const ModelConfig& config, const WeightInfo& info, at::Generator generator) {
  if (ends_with(info.hf_name, "norm.weight")) return at::ones(info.shape, at::kFloat);
  if (ends_with(info.hf_name, ".bias")) return at::zeros(info.shape, at::kFloat);
  return at::empty(info.shape, at::kFloat).normal_(0.0, config.initializer_range, std::move(generator));
}

}  // namespace hexad::modeling
