#include "plugins/native/cuda/fused_weights.hpp"

#include <ATen/Functions.h>

#include "modeling/family/transformer.hpp"

namespace hexad::native::cuda {

FusedWeights::FusedWeights(const modeling::ModelConfig& config, WeightMap weights) {
  const auto take = [&](const std::string& name) { return std::move(weights.at(name)); };
  embedding = take(modeling::kEmbeddingName);
  head = config.tie_word_embeddings ? embedding : take(modeling::head_weight_name(config));
  final_norm = take(modeling::kFinalNormName);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const modeling::LayerWeights w = modeling::layer_weights(config, i, take);
    layers.push_back({.input_norm = w.input_norm,
                      .post_attention_norm = w.post_attention_norm,
                      .q_norm = w.q_norm,
                      .k_norm = w.k_norm,
                      .qkv = at::cat({w.q_proj, w.k_proj, w.v_proj}),
                      .qkv_bias = w.q_bias.defined() ? at::cat({w.q_bias, w.k_bias, w.v_bias}) : at::Tensor(),
                      .output = w.o_proj,
                      .gate_up = at::cat({w.gate_proj, w.up_proj}),
                      .down = w.down_proj});
  }
}

}  // namespace hexad::native::cuda
