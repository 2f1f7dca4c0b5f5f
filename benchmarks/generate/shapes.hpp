// Published model shapes, and random weights for them on a GPU.
#pragma once
#include <ATen/Functions.h>

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "modeling/family/weight_table.hpp"
#include "plugins/native/model/fp8_rows.hpp"

namespace generate {

inline const std::map<std::string, nlohmann::json>& shapes() {
  static const std::map<std::string, nlohmann::json> table = {{"llama-8b",
                                                               {{"model_type", "llama"},
                                                                {"hidden_size", 4096},
                                                                {"num_hidden_layers", 32},
                                                                {"num_attention_heads", 32},
                                                                {"num_key_value_heads", 8},
                                                                {"head_dim", 128},
                                                                {"intermediate_size", 14336},
                                                                {"vocab_size", 128256},
                                                                {"rope_theta", 500000.0},
                                                                {"hidden_act", "silu"},
                                                                {"max_position_embeddings", 131072},
                                                                {"rms_norm_eps", 1e-5},
                                                                {"tie_word_embeddings", false},
                                                                {"eos_token_id", 128001}}},
                                                              {"qwen2.5-1.5b",
                                                               {{"model_type", "qwen2"},
                                                                {"hidden_size", 1536},
                                                                {"num_hidden_layers", 28},
                                                                {"num_attention_heads", 12},
                                                                {"num_key_value_heads", 2},
                                                                {"intermediate_size", 8960},
                                                                {"vocab_size", 151936},
                                                                {"rope_theta", 1000000.0},
                                                                {"hidden_act", "silu"},
                                                                {"max_position_embeddings", 32768},
                                                                {"rms_norm_eps", 1e-6},
                                                                {"tie_word_embeddings", true},
                                                                {"use_sliding_window", false},
                                                                {"eos_token_id", 151645}}},
                                                              {"qwen3-0.6b",
                                                               {{"model_type", "qwen3"},
                                                                {"hidden_size", 1024},
                                                                {"num_hidden_layers", 28},
                                                                {"num_attention_heads", 16},
                                                                {"num_key_value_heads", 8},
                                                                {"head_dim", 128},
                                                                {"intermediate_size", 3072},
                                                                {"vocab_size", 151936},
                                                                {"rope_theta", 1000000.0},
                                                                {"hidden_act", "silu"},
                                                                {"max_position_embeddings", 40960},
                                                                {"rms_norm_eps", 1e-6},
                                                                {"tie_word_embeddings", true},
                                                                {"eos_token_id", 151645}}},
                                                              {"tiny",
                                                               {{"model_type", "llama"},
                                                                {"hidden_size", 256},
                                                                {"num_hidden_layers", 2},
                                                                {"num_attention_heads", 4},
                                                                {"num_key_value_heads", 2},
                                                                {"head_dim", 64},
                                                                {"intermediate_size", 512},
                                                                {"vocab_size", 1000},
                                                                {"rope_theta", 500000.0},
                                                                {"hidden_act", "silu"},
                                                                {"max_position_embeddings", 8192},
                                                                {"rms_norm_eps", 1e-5},
                                                                {"tie_word_embeddings", false},
                                                                {"eos_token_id", 2}}}};
  return table;
}

using Weights = std::map<std::string, at::Tensor>;

// bf16 on the device in a second or two: matrices normal(0, 0.02), norms about 1, biases small.
inline Weights random_weights(const hexad::modeling::ModelConfig& config, at::Device device) {
  Weights weights;
  for (const hexad::modeling::WeightInfo& info : hexad::modeling::weight_table(config)) {
    const at::Tensor weight = at::empty(info.shape, at::TensorOptions(at::kBFloat16).device(device));
    weights[info.hf_name] = weight.normal_(info.hf_name.ends_with("norm.weight") ? 1.0 : 0.0, 0.02);
  }
  return weights;
}

// Parameters that a token's pass reads: everything but the input embedding (a tied one is read as the head).
inline double parameters_read(const hexad::modeling::ModelConfig& config) {
  double count = 0;
  for (const hexad::modeling::WeightInfo& info : hexad::modeling::weight_table(config)) {
    if (info.hf_name == hexad::modeling::kEmbeddingName && !config.tie_word_embeddings) continue;
    double size = 1;
    for (const int64_t extent : info.shape) size *= double(extent);
    count += size;
  }
  return count;
}

// Of the layers' matrices.
inline double parameters_of_layers(const hexad::modeling::ModelConfig& config) {
  double count = 0;
  for (const hexad::modeling::WeightInfo& info : hexad::modeling::weight_table(config))
    if (hexad::native::is_fp8_weight(info.hf_name, info.shape)) count += double(info.shape[0]) * double(info.shape[1]);
  return count;
}

}  // namespace generate
