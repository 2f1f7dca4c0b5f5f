// Small models of every family on disk, with random weights.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <nlohmann/json.hpp>

#include "modeling/family/weight_table.hpp"
#include "modeling/weight/safetensors_writer.hpp"
#include "tests/modeling/support/temporary_dir.hpp"

namespace native_test {

using Weights = std::map<std::string, at::Tensor>;

inline const std::vector<std::string>& families() {
  static const std::vector<std::string> names = {"llama", "mistral", "qwen2", "qwen3"};
  return names;
}

inline const std::vector<std::string>& expert_families() {
  static const std::vector<std::string> names = {"mixtral", "qwen2_moe", "qwen3_moe"};
  return names;
}

// Grouped KV heads, widths that no vector size divides, and what is particular to a family: tied or not, biases, q/k
// norm, a sliding window.
inline nlohmann::json tiny_config(const std::string& family) {
  nlohmann::json config = {{"model_type", family},           {"vocab_size", 97},         {"hidden_size", 36},
                           {"num_hidden_layers", 3},         {"num_attention_heads", 6}, {"num_key_value_heads", 2},
                           {"intermediate_size", 59},        {"rms_norm_eps", 1e-6},     {"hidden_act", "silu"},
                           {"max_position_embeddings", 512}, {"rope_theta", 10000.0},    {"eos_token_id", 0}};
  config["head_dim"] = family == "qwen2" ? 6 : 10;
  config["tie_word_embeddings"] = family == "llama" || family == "qwen3";
  if (family == "mistral") config["sliding_window"] = 7;
  if (family == "mixtral") config.update({{"num_local_experts", 5}, {"num_experts_per_tok", 2}});
  if (family.ends_with("_moe")) {
    config.update({{"num_experts", 7},
                   {"num_experts_per_tok", 3},
                   {"moe_intermediate_size", 21},
                   {"norm_topk_prob", true},
                   {"mlp_only_layers", {1}}});
  }
  if (family == "qwen2_moe") config["shared_expert_intermediate_size"] = 17;
  return config;
}

inline Weights random_weights(const hexad::modeling::ModelConfig& config, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  Weights weights;
  for (const auto& info : hexad::modeling::weight_table(config)) {
    const bool norm = info.shape.size() == 1 && info.hf_name.find("norm") != std::string::npos;
    weights[info.hf_name] = at::empty(info.shape, at::kFloat).normal_(norm ? 1.0 : 0.0, norm ? 0.2 : 0.25, generator);
  }
  return weights;
}

class TinyModel {
 public:
  // `changes`: to tiny_config().
  explicit TinyModel(const std::string& family, bool with_weights = true,
                     const nlohmann::json& changes = nlohmann::json::object()) {
    nlohmann::json json = tiny_config(family);
    json.update(changes);
    hexad::modeling::write_file(dir_ / "config.json", json.dump(1));
    config = hexad::modeling::load_model_config(dir_.path());
    weights = random_weights(config, 7);
    if (with_weights) save(weights);
  }

  void save(const Weights& set) const {
    std::vector<hexad::modeling::TensorSpec> specs;
    for (const auto& [name, tensor] : set) specs.push_back({name, tensor.sizes().vec(), at::kFloat});
    hexad::modeling::SafetensorsWriter writer(dir_.path(), specs);
    for (const auto& [name, tensor] : set) writer.write(name, tensor);
    writer.finish();
  }

  std::string path() const { return dir_.path().string(); }

  hexad::modeling::ModelConfig config;
  Weights weights;

 private:
  hexad::modeling::TemporaryDir dir_;
};

// A prompt of ids in [1, vocab), a function of `seed`.
inline std::vector<int32_t> random_prompt(uint64_t seed, int64_t size, int64_t vocab = 97) {
  uint64_t state = seed * 7919 + 1;
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < size; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    prompt.push_back(static_cast<int32_t>(1 + (state >> 33) % static_cast<uint64_t>(vocab - 1)));
  }
  return prompt;
}

}  // namespace native_test
