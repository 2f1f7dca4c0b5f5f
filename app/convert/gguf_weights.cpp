#include <cstring>
#include <set>

#include "app/convert/gguf.hpp"
#include "app/convert/gguf_architecture.hpp"
#include "app/convert/gguf_rope.hpp"
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

void add_norm(std::vector<GgufWeight>& weights, int64_t layer, const char* name, const char* gguf_name,
              int64_t length) {
  weights.push_back({fmt::format("model.layers.{}.{}.weight", layer, name),
                     fmt::format("blk.{}.{}.weight", layer, gguf_name),
                     {length}});
}

void add_attention(std::vector<GgufWeight>& weights, int64_t layer, const GgufArchitecture& architecture,
                   const Json& config) {
  const int64_t hidden = config.at("hidden_size"), size = config.at("head_dim");
  const int64_t heads = config.at("num_attention_heads"), kv_heads = config.at("num_key_value_heads");
  const bool bias = config.value("attention_bias", false), qkv_bias = bias || architecture.always_qkv_bias;
  // llama.cpp rotates neighbouring elements and stores llama's q and k accordingly; qwen's are as in transformers.
  const bool permuted = architecture.permuted;
  add_norm(weights, layer, "input_layernorm", "attn_norm", hidden);
  add_linear(weights, layer, {"self_attn.q_proj", "attn_q", heads * size, hidden, qkv_bias, permuted ? heads : 0});
  add_linear(weights, layer,
             {"self_attn.k_proj", "attn_k", kv_heads * size, hidden, qkv_bias, permuted ? kv_heads : 0});
  add_linear(weights, layer, {"self_attn.v_proj", "attn_v", kv_heads * size, hidden, qkv_bias});
  add_linear(weights, layer, {"self_attn.o_proj", "attn_output", hidden, heads * size, bias});
  if (architecture.qk_norm) {
    add_norm(weights, layer, "self_attn.q_norm", "attn_q_norm", size);
    add_norm(weights, layer, "self_attn.k_norm", "attn_k_norm", size);
  }
  add_norm(weights, layer, "post_attention_layernorm", "ffn_norm", hidden);
}

// The three linears of an MLP, by the names that follow `name` and `gguf_name`.
void add_mlp(std::vector<GgufWeight>& weights, int64_t layer, const std::string& name, const char* gguf_suffix,
             int64_t hidden, int64_t inner, bool bias) {
  for (const char* part : {"gate", "up", "down"}) {
    const bool down = part == std::string_view("down");
    const std::string linear = fmt::format("{}.{}_proj", name, part),
                      stored = fmt::format("ffn_{}{}", part, gguf_suffix);
    add_linear(weights, layer, {linear.c_str(), stored.c_str(), down ? hidden : inner, down ? inner : hidden, bias});
  }
}

// The file keeps the matrices of all experts of a layer in one tensor [experts, rows, columns].
void add_experts(std::vector<GgufWeight>& weights, int64_t layer, const GgufArchitecture& architecture,
                 const Json& config) {
  struct Matrix {
    const char *name, *mixtral, *gguf_name;
  };
  constexpr Matrix matrices[] = {
      {"gate_proj", "w1", "ffn_gate_exps"}, {"up_proj", "w3", "ffn_up_exps"}, {"down_proj", "w2", "ffn_down_exps"}};
  const bool mixtral = architecture.model_type == std::string_view("mixtral");
  const char* block = mixtral ? "block_sparse_moe" : "mlp";
  const int64_t hidden = config.at("hidden_size"), experts = config.at(architecture.experts);
  const int64_t inner = config.at(mixtral ? "intermediate_size" : "moe_intermediate_size");
  const std::string router = fmt::format("{}.gate", block);
  add_linear(weights, layer, {router.c_str(), "ffn_gate_inp", experts, hidden, false});
  for (const Matrix& matrix : matrices) {
    const bool down = matrix.gguf_name == std::string_view("ffn_down_exps");
    for (int64_t expert = 0; expert < experts; ++expert) {
      const std::string name = fmt::format("{}.experts.{}.{}", block, expert, mixtral ? matrix.mixtral : matrix.name);
      add_linear(weights, layer, {name.c_str(), matrix.gguf_name, down ? hidden : inner, down ? inner : hidden, false});
      weights.back().expert = expert, weights.back().experts = experts;
    }
  }
  if (!architecture.shared_expert) return;
  add_mlp(weights, layer, "mlp.shared_expert", "_shexp", hidden, config.at("shared_expert_intermediate_size"), false);
  add_linear(weights, layer, {"mlp.shared_expert_gate", "ffn_gate_inp_shexp", 1, hidden, false});
}

}  // namespace

std::vector<int64_t> GgufWeight::gguf_shape() const {
  std::vector<int64_t> result = shape;
  if (experts > 0) result.insert(result.begin(), experts);
  return result;
}

// Row i of a head in the file is row i/2 of the first half (i even) or of the second half (i odd) of the head.
int64_t GgufWeight::model_row(int64_t row) const {
  if (permuted_heads == 0) return row;
  const int64_t size = shape[0] / permuted_heads, head = row / size, i = row % size;
  return head * size + i % 2 * (size / 2) + i / 2;
}

std::vector<GgufWeight> gguf_weights(const Json& config) {
  const GgufArchitecture& architecture = *architecture_of(config.at("model_type"));
  const int64_t hidden = config.at("hidden_size"), vocabulary = config.at("vocab_size");
  const int64_t layers = config.at("num_hidden_layers");
  std::vector<GgufWeight> weights = {{"model.embed_tokens.weight", "token_embd.weight", {vocabulary, hidden}}};
  for (int64_t layer = 0; layer < layers; ++layer) {
    add_attention(weights, layer, architecture, config);
    if (architecture.experts)
      add_experts(weights, layer, architecture, config);
    else
      add_mlp(weights, layer, "mlp", "", hidden, config.at("intermediate_size"), config.value("mlp_bias", false));
  }
  weights.push_back({"model.norm.weight", "output_norm.weight", {hidden}});
  if (!config.at("tie_word_embeddings")) weights.push_back({"lm_head.weight", "output.weight", {vocabulary, hidden}});
  return weights;
}

void check_gguf_weights(const tensorfile::Gguf& gguf, const std::vector<GgufWeight>& weights) {
  std::set<std::string> used = {kRopeDivisors};  // in config.json as rope_scaling
  for (const GgufWeight& weight : weights) {
    const tensorfile::GgufTensor* tensor = gguf.find(weight.gguf_name);
    if (!tensor) fail(ErrorKind::data, "{}: tensor \"{}\" is missing", gguf.path().string(), weight.gguf_name);
    std::vector<int64_t> wanted = weight.gguf_shape();
    if (wanted.front() == 1 && tensor->shape.size() + 1 == wanted.size()) wanted.erase(wanted.begin());  // older files
    if (tensor->shape != wanted) {
      fail(ErrorKind::data, "{}: tensor \"{}\" has shape [{}], the metadata want [{}]", gguf.path().string(),
           weight.gguf_name, joined(tensor->shape), joined(wanted));
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

std::vector<float> read_gguf_weight(const tensorfile::Gguf& gguf, const GgufWeight& weight) {
  tensorfile::GgufTensor tensor = *gguf.find(weight.gguf_name);
  if (weight.experts > 0) {
    const size_t bytes = tensor.data.size() / static_cast<size_t>(weight.experts);
    tensor.data = tensor.data.subspan(bytes * static_cast<size_t>(weight.expert), bytes);
    tensor.shape = weight.shape;
  }
  std::vector<float> values = tensorfile::dequantize(tensor);
  if (weight.permuted_heads == 0) return values;
  const int64_t rows = weight.shape[0], columns = weight.shape.size() > 1 ? weight.shape[1] : 1;
  std::vector<float> ordered(values.size());
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(&ordered[weight.model_row(row) * columns], &values[row * columns], columns * sizeof(float));
  return ordered;
}

}  // namespace hexad::convert
