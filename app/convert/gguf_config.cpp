#include <cmath>
#include <numbers>
#include <optional>

#include "app/convert/gguf.hpp"
#include "lib/base/error.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

// Below 2^31, so that a product of two sizes stays inside 64 bits.
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

int64_t vocabulary_size(const tensorfile::Gguf& gguf) {
  const tensorfile::GgufTensor* embedding = gguf.find("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2) {
    fail(ErrorKind::data, "{}: tensor \"token_embd.weight\" is missing or no matrix", gguf.path().string());
  }
  return embedding->shape[0];
}

// Llama 3.x: llama.cpp stores the divisors of the rotary frequencies as a tensor instead of the parameters that they
// were made from (transformers' rope_type "llama3"). Every published model has low_freq_factor 1 and high_freq_factor 4
// over 8192 positions; the factor is the largest divisor. The divisors are recomputed and must agree.
Json llama3_scaling(const tensorfile::Gguf& gguf, const tensorfile::GgufTensor& tensor, int64_t head_dim,
                    double theta) {
  const std::vector<float> divisors = tensorfile::dequantize(tensor);
  if (divisors.size() != static_cast<size_t>(head_dim / 2)) {
    fail(ErrorKind::data, "{}: tensor \"rope_freqs.weight\" has {} elements, heads of size {} want {}",
         gguf.path().string(), divisors.size(), head_dim, head_dim / 2);
  }
  double factor = 1;
  for (float divisor : divisors) factor = std::max<double>(factor, divisor);
  constexpr double low = 1, high = 4, original = 8192;
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / divisors.size());
    const double smooth = std::clamp((original / wavelength - low) / (high - low), 0.0, 1.0);
    const double expected = 1 / ((1 - smooth) / factor + smooth);
    if (!(std::abs(divisors[i] - expected) <= 1e-4 * expected)) {
      fail(ErrorKind::data,
           "{}: tensor \"rope_freqs.weight\" holds {} at element {}, Llama 3's rope scaling by {} would be {}: this "
           "scaling cannot be written into config.json",
           gguf.path().string(), divisors[i], i, factor, expected);
    }
  }
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", low},
          {"high_freq_factor", high},
          {"original_max_position_embeddings", static_cast<int64_t>(original)}};
}

// config.json's "rope_scaling": null when there is none.
Json rope_scaling(const tensorfile::Gguf& gguf, const std::string& arch, int64_t head_dim, double theta) {
  if (const tensorfile::GgufTensor* divisors = gguf.find("rope_freqs.weight")) {
    return llama3_scaling(gguf, *divisors, head_dim, theta);
  }
  const auto type = gguf.get_or<std::string>(arch + ".rope.scaling.type", "none");
  if (type == "none") return nullptr;
  const auto factor = positive_real(gguf, arch + ".rope.scaling.factor");
  if (type == "linear") return {{"rope_type", "linear"}, {"factor", factor}};
  if (type == "yarn") {
    return {{"rope_type", "yarn"},
            {"factor", factor},
            {"original_max_position_embeddings", positive(gguf, arch + ".rope.scaling.original_context_length")}};
  }
  fail(ErrorKind::data, "{}: metadata \"{}.rope.scaling.type\" is \"{}\", known are none, linear, yarn",
       gguf.path().string(), arch, type);
}

void add_token_ids(const tensorfile::Gguf& gguf, int64_t vocabulary, Json& config) {
  for (const char* role : {"bos", "eos", "padding"}) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role);
    if (!gguf.metadata().contains(key)) continue;
    const auto id = gguf.get<int64_t>(key);
    if (id < 0 || id >= vocabulary) {
      fail(ErrorKind::data, "{}: metadata \"{}\" is {}, but the vocabulary has {} tokens", gguf.path().string(), key,
           id, vocabulary);
    }
    config[role == std::string_view("padding") ? "pad_token_id" : fmt::format("{}_token_id", role)] = id;
  }
}

}  // namespace

Json gguf_config(const tensorfile::Gguf& gguf) {
  const auto arch = gguf.get<std::string>("general.architecture");
  if (arch != "llama" && arch != "qwen2" && arch != "qwen3") {
    fail(ErrorKind::data, "{}: architecture \"{}\" cannot be converted; known are llama, qwen2, qwen3",
         gguf.path().string(), arch);
  }
  const auto key = [&](const char* name) { return arch + "." + name; };
  if (gguf.get_or<int64_t>(key("expert_count"), 0) > 0) {
    fail(ErrorKind::data, "{}: a mixture of experts (\"{}.expert_count\") cannot be converted", gguf.path().string(),
         arch);
  }
  const int64_t hidden = positive(gguf, key("embedding_length")), heads = positive(gguf, key("attention.head_count"));
  const int64_t kv_heads =
      gguf.metadata().contains(key("attention.head_count_kv")) ? positive(gguf, key("attention.head_count_kv")) : heads;
  const int64_t head_dim = gguf.metadata().contains(key("attention.key_length"))
                               ? positive(gguf, key("attention.key_length"))
                               : hidden / heads;
  if (heads % kv_heads != 0 || head_dim % 2 != 0) {
    fail(ErrorKind::data,
         "{}: {} attention heads, {} key/value heads of size {}: heads must be a multiple, the size even",
         gguf.path().string(), heads, kv_heads, head_dim);
  }
  const auto rotated = gguf.get_or<int64_t>(key("rope.dimension_count"), head_dim);
  if (rotated != head_dim) {
    fail(ErrorKind::data,
         "{}: metadata \"{}.rope.dimension_count\" is {}, but heads have {} elements: partial rotary "
         "embeddings cannot be converted",
         gguf.path().string(), arch, rotated, head_dim);
  }
  const double theta =
      gguf.metadata().contains(key("rope.freq_base")) ? positive_real(gguf, key("rope.freq_base")) : 10000.0;
  const bool tied = !gguf.find("output.weight");

  const char* architecture = arch == "llama"   ? "LlamaForCausalLM"
                             : arch == "qwen2" ? "Qwen2ForCausalLM"
                                               : "Qwen3ForCausalLM";
  Json config = {{"architectures", {architecture}}, {"model_type", arch}};
  const int64_t vocabulary = vocabulary_size(gguf);
  add_token_ids(gguf, vocabulary, config);
  config.update({{"hidden_act", "silu"},
                 {"hidden_size", hidden},
                 {"intermediate_size", positive(gguf, key("feed_forward_length"))},
                 {"num_hidden_layers", positive(gguf, key("block_count"))},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", kv_heads},
                 {"head_dim", head_dim},
                 {"max_position_embeddings", positive(gguf, key("context_length"))},
                 {"rms_norm_eps", positive_real(gguf, key("attention.layer_norm_rms_epsilon"))},
                 {"rope_theta", theta},
                 {"rope_scaling", rope_scaling(gguf, arch, head_dim, theta)},
                 {"tie_word_embeddings", tied},
                 {"vocab_size", vocabulary}});
  if (arch != "qwen2") config["attention_bias"] = gguf.find("blk.0.attn_q.bias") != nullptr;
  if (arch == "llama") config["mlp_bias"] = gguf.find("blk.0.ffn_up.bias") != nullptr;
  return config;
}

}  // namespace hexad::convert
