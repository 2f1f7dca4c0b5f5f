#include "plugins/native/model/cpu_weights.hpp"

#include "modeling/family/transformer.hpp"

namespace hexad::native {

CpuWeights::CpuWeights(const modeling::ModelConfig& config, WeightMap weights) : weights_(std::move(weights)) {
  const auto lookup = [&](const std::string& name) { return weights_.at(name); };
  const auto vector = [&](const at::Tensor& tensor) -> const float* {
    if (!tensor.defined()) return nullptr;
    vectors_.push_back(tensor.to(at::kFloat).contiguous());
    return vectors_.back().const_data_ptr<float>();
  };
  embedding = lookup(modeling::kEmbeddingName).const_data_ptr();
  head = lookup(modeling::head_weight_name(config)).const_data_ptr();
  final_norm = vector(lookup(modeling::kFinalNormName));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const modeling::LayerWeights w = modeling::layer_weights(config, i, lookup);
    layers.push_back({.q = w.q_proj.const_data_ptr(),
                      .k = w.k_proj.const_data_ptr(),
                      .v = w.v_proj.const_data_ptr(),
                      .o = w.o_proj.const_data_ptr(),
                      .gate = w.gate_proj.const_data_ptr(),
                      .up = w.up_proj.const_data_ptr(),
                      .down = w.down_proj.const_data_ptr(),
                      .input_norm = vector(w.input_norm),
                      .post_attention_norm = vector(w.post_attention_norm),
                      .q_norm = vector(w.q_norm),
                      .k_norm = vector(w.k_norm),
                      .q_bias = vector(w.q_bias),
                      .k_bias = vector(w.k_bias),
                      .v_bias = vector(w.v_bias),
                      .o_bias = vector(w.o_bias),
                      .gate_bias = vector(w.gate_bias),
                      .up_bias = vector(w.up_bias),
                      .down_bias = vector(w.down_bias)});
  }
}

}  // namespace hexad::native
