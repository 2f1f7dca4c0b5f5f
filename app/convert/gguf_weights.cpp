#include <cstring>
#include <set>

#include "app/convert/gguf.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

// The linears of a layer: their names on both sides and the sizes of their matrix [rows, columns].
struct Linear {
  const char *name, *gguf_name;
  int64_t rows, columns;
  bool bias;
  int64_t permuted_heads = 0;
};

void add_linear(std::vector<GgufWeight>& weights, int64_t layer, const Linear& linear) {
  const std::string name = fmt::format("model.layers.{}.{}", layer, linear.name);
  const std::string gguf_name = fmt::format("blk.{}.{}", layer, linear.gguf_name);
  weights.push_back({name + ".weight", gguf_name + ".weight", {linear.rows, linear.columns}, linear.permuted_heads});
  if (linear.bias) weights.push_back({name + ".bias", gguf_name + ".bias", {linear.rows}, linear.permuted_heads});
}

void add_layer(std::vector<GgufWeight>& weights, int64_t layer, const Json& config) {
  const std::string arch = config.at("model_type");
  const int64_t hidden = config.at("hidden_size"), inner = config.at("intermediate_size"), size = config.at("head_dim");
  const int64_t heads = config.at("num_attention_heads"), kv_heads = config.at("num_key_value_heads");
  const bool attention_bias = config.value("attention_bias", false), mlp_bias = config.value("mlp_bias", false);
  const bool qkv_bias = arch == "qwen2" || attention_bias;
  // llama.cpp rotates neighbouring elements and stores llama's q and k accordingly; qwen's are as in transformers.
  const bool permuted = arch == "llama";
  const auto add_norm = [&](const char* name, const char* gguf_name, int64_t length) {
    weights.push_back({fmt::format("model.layers.{}.{}.weight", layer, name),
                       fmt::format("blk.{}.{}.weight", layer, gguf_name),
                       {length}});
  };

  add_norm("input_layernorm", "attn_norm", hidden);
  add_linear(weights, layer, {"self_attn.q_proj", "attn_q", heads * size, hidden, qkv_bias, permuted ? heads : 0});
  add_linear(weights, layer,
             {"self_attn.k_proj", "attn_k", kv_heads * size, hidden, qkv_bias, permuted ? kv_heads : 0});
  add_linear(weights, layer, {"self_attn.v_proj", "attn_v", kv_heads * size, hidden, qkv_bias});
  add_linear(weights, layer, {"self_attn.o_proj", "attn_output", hidden, heads * size, attention_bias});
  if (arch == "qwen3") {
    add_norm("self_attn.q_norm", "attn_q_norm", size);
    add_norm("self_attn.k_norm", "attn_k_norm", size);
  }
  add_norm("post_attention_layernorm", "ffn_norm", hidden);
  add_linear(weights, layer, {"mlp.gate_proj", "ffn_gate", inner, hidden, mlp_bias});
  add_linear(weights, layer, {"mlp.up_proj", "ffn_up", inner, hidden, mlp_bias});
  add_linear(weights, layer, {"mlp.down_proj", "ffn_down", hidden, inner, mlp_bias});
}

void check(const tensorfile::Gguf& gguf, const std::vector<GgufWeight>& weights) {
  std::set<std::string> used = {"rope_freqs.weight"};  // in config.json as rope_scaling
  for (const GgufWeight& weight : weights) {
    const tensorfile::GgufTensor* tensor = gguf.find(weight.gguf_name);
    if (!tensor) fail(ErrorKind::data, "{}: tensor \"{}\" is missing", gguf.path().string(), weight.gguf_name);
    if (tensor->shape != weight.shape) {
      fail(ErrorKind::data, "{}: tensor \"{}\" has shape [{}], the metadata want [{}]", gguf.path().string(),
           weight.gguf_name, joined(tensor->shape), joined(weight.shape));
    }
    used.insert(weight.gguf_name);
  }
  for (const tensorfile::GgufTensor& tensor : gguf.tensors()) {
    if (!used.contains(tensor.name)) {
      fail(ErrorKind::data, "{}: tensor \"{}\" belongs to no part of a {} model", gguf.path().string(), tensor.name,
           gguf.get<std::string>("general.architecture"));
    }
  }
}

}  // namespace

std::vector<GgufWeight> gguf_weights(const tensorfile::Gguf& gguf, const Json& config) {
  const int64_t hidden = config.at("hidden_size"), vocabulary = config.at("vocab_size");
  const int64_t layers = config.at("num_hidden_layers");
  if (static_cast<uint64_t>(layers) > gguf.tensors().size()) {
    fail(ErrorKind::data, "{}: {} layers are announced, but there are only {} tensors", gguf.path().string(), layers,
         gguf.tensors().size());
  }
  std::vector<GgufWeight> weights = {{"model.embed_tokens.weight", "token_embd.weight", {vocabulary, hidden}}};
  for (int64_t layer = 0; layer < layers; ++layer) add_layer(weights, layer, config);
  weights.push_back({"model.norm.weight", "output_norm.weight", {hidden}});
  if (!config.at("tie_word_embeddings")) weights.push_back({"lm_head.weight", "output.weight", {vocabulary, hidden}});
  check(gguf, weights);
  return weights;
}

std::vector<float> read_gguf_weight(const tensorfile::Gguf& gguf, const GgufWeight& weight) {
  std::vector<float> values = tensorfile::dequantize(*gguf.find(weight.gguf_name));
  if (weight.permuted_heads == 0) return values;
  // Row i of a head in the file is row i/2 of the first half (i even) or of the second half (i odd) of the head.
  const int64_t rows = weight.shape[0], columns = weight.shape.size() > 1 ? weight.shape[1] : 1;
  const int64_t size = rows / weight.permuted_heads;
  std::vector<float> ordered(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row / size, i = row % size;
    const int64_t target = head * size + i % 2 * (size / 2) + i / 2;
    std::memcpy(&ordered[target * columns], &values[row * columns], columns * sizeof(float));
  }
  return ordered;
}

}  // namespace hexad::convert
