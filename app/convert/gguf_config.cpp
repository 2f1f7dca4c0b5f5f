#include <cmath>

#include "app/convert/gguf.hpp"
#include "app/convert/gguf_architecture.hpp"
#include "app/convert/gguf_rope.hpp"
#include "lib/base/error.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

int64_t vocabulary_size(const tensorfile::Gguf& gguf) {
  const tensorfile::GgufTensor* embedding = gguf.find("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2) {
    fail(ErrorKind::data, "{}: tensor \"token_embd.weight\" is missing or no matrix", gguf.path().string());
  }
  return embedding->shape[0];
}

void add_token_ids(const tensorfile::Gguf& gguf, int64_t vocabulary, Json& config) {
  for (const GgufRole& role : gguf_roles()) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role.name);
    if (!gguf.metadata().contains(key) || role.name == std::string_view("unknown")) continue;
    const auto id = gguf.get<int64_t>(key);
    if (id < 0 || id >= vocabulary) {
      fail(ErrorKind::data, "{}: metadata \"{}\" is {}, but the vocabulary has {} tokens", gguf.path().string(), key,
           id, vocabulary);
    }
    config[role.id] = id;
  }
}

const GgufArchitecture& architecture_of_file(const tensorfile::Gguf& gguf) {
  const auto arch = gguf.get<std::string>("general.architecture");
  const bool experts = gguf.get_or<int64_t>(arch + ".expert_count", 0) > 0;
  if (const GgufArchitecture* found = architecture_named(arch, experts)) return *found;
  if (!architecture_named(arch, !experts)) {
    fail(ErrorKind::data, "{}: architecture \"{}\" cannot be converted; known are {}", gguf.path().string(), arch,
         known_architectures());
  }
  fail(ErrorKind::data, "{}: a model of architecture \"{}\" {} experts (\"{}.expert_count\") cannot be converted",
       gguf.path().string(), arch, experts ? "with" : "without", arch);
}

// Of a size that the file may say in other words: what it says is the same.
void require_same(const tensorfile::Gguf& gguf, const std::string& key, int64_t head_dim, const char* else_it_is) {
  const auto size = gguf.get_or<int64_t>(key, head_dim);
  if (size == head_dim) return;
  fail(ErrorKind::data, "{}: metadata \"{}\" is {}, but heads have {} elements: {} cannot be converted",
       gguf.path().string(), key, size, head_dim, else_it_is);
}

// Every layer has experts in these, and they are chosen by softmax.
void add_experts(const tensorfile::Gguf& gguf, const GgufArchitecture& architecture, Json& config) {
  const auto number = [&](const char* key) { config[key] = positive(gguf, gguf_key(architecture, key)); };
  number(architecture.experts);
  number("num_experts_per_tok");
  if (config[architecture.experts] < config["num_experts_per_tok"]) {
    fail(ErrorKind::data, "{}: {} experts of {} are used for a token", gguf.path().string(),
         config["num_experts_per_tok"].get<int64_t>(), config[architecture.experts].get<int64_t>());
  }
  uint64_t bytes = 0;
  for (const tensorfile::GgufTensor& tensor : gguf.tensors()) bytes += tensor.data.size();
  const int64_t layers = config["num_hidden_layers"], experts = config[architecture.experts];
  constexpr uint64_t least = 256;  // bytes of an expert, of the smallest that makes sense
  if (static_cast<uint64_t>(layers * experts) > bytes / least) {
    fail(ErrorKind::data, "{}: {} experts in each of {} layers are announced, but all tensors have only {} bytes",
         gguf.path().string(), experts, layers, bytes);
  }
  if (architecture.model_type == std::string_view("mixtral")) return;
  number("moe_intermediate_size");
  if (architecture.shared_expert) number("shared_expert_intermediate_size");
  config.update(
      {{"norm_topk_prob", architecture.norm_topk}, {"decoder_sparse_step", 1}, {"mlp_only_layers", Json::array()}});
}

}  // namespace

int64_t positive(const tensorfile::Gguf& gguf, const std::string& key) {
  const auto value = gguf.get<int64_t>(key);
  if (value <= 0 || value > INT32_MAX) {
    fail(ErrorKind::data, "{}: metadata \"{}\" is {}, wanted a positive number up to {}", gguf.path().string(), key,
         value, INT32_MAX);
  }
  return value;
}

double positive_real(const tensorfile::Gguf& gguf, const std::string& key) {
  const auto value = gguf.get<double>(key);
  if (!(value > 0) || !std::isfinite(value)) {
    fail(ErrorKind::data, "{}: metadata \"{}\" is {}, wanted a positive number", gguf.path().string(), key, value);
  }
  return value;
}

Json gguf_config(const tensorfile::Gguf& gguf) {
  const GgufArchitecture& architecture = architecture_of_file(gguf);
  const std::string arch = architecture.name, type = architecture.model_type;
  const auto key = [&](const char* name) { return gguf_key(architecture, name); };
  const auto or_else = [&](const char* name, int64_t otherwise) {
    return gguf.metadata().contains(key(name)) ? positive(gguf, key(name)) : otherwise;
  };
  const int64_t hidden = positive(gguf, key("hidden_size")), heads = positive(gguf, key("num_attention_heads"));
  const int64_t kv_heads = or_else("num_key_value_heads", heads), head_dim = or_else("head_dim", hidden / heads);
  if (heads % kv_heads != 0 || head_dim % 2 != 0) {
    fail(ErrorKind::data,
         "{}: {} attention heads, {} key/value heads of size {}: heads must be a multiple, the size even",
         gguf.path().string(), heads, kv_heads, head_dim);
  }
  require_same(gguf, arch + ".rope.dimension_count", head_dim, "partial rotary embeddings");
  require_same(gguf, arch + ".attention.value_length", head_dim, "values of another size than keys");
  const double theta = gguf.metadata().contains(key("rope_theta")) ? positive_real(gguf, key("rope_theta")) : 10000.0;
  const bool tied = !gguf.find("output.weight");
  const int64_t layers = positive(gguf, key("num_hidden_layers"));
  if (static_cast<uint64_t>(layers) > gguf.tensors().size()) {
    fail(ErrorKind::data, "{}: {} layers are announced, but there are only {} tensors", gguf.path().string(), layers,
         gguf.tensors().size());
  }

  Json config = {{"architectures", {architecture.class_name}}, {"model_type", type}};
  const int64_t vocabulary = vocabulary_size(gguf);
  add_token_ids(gguf, vocabulary, config);
  config.update({{"hidden_act", "silu"},
                 {"hidden_size", hidden},
                 {"intermediate_size", positive(gguf, key("intermediate_size"))},
                 {"num_hidden_layers", layers},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", kv_heads},
                 {"head_dim", head_dim},
                 {"max_position_embeddings", positive(gguf, key("max_position_embeddings"))},
                 {"rms_norm_eps", positive_real(gguf, key("rms_norm_eps"))},
                 {"rope_theta", theta},
                 {"rope_scaling", gguf_rope_scaling(gguf, arch, head_dim, theta)},
                 {"tie_word_embeddings", tied},
                 {"vocab_size", vocabulary}});
  if (architecture.experts) add_experts(gguf, architecture, config);
  const bool dense_llama = type == "llama";
  if (dense_llama || architecture.qk_norm) config["attention_bias"] = gguf.find("blk.0.attn_q.bias") != nullptr;
  if (dense_llama) config["mlp_bias"] = gguf.find("blk.0.ffn_up.bias") != nullptr;
  return config;
}

}  // namespace hexad::convert
