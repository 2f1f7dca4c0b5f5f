#include "plugins/native/model/cpu_weights.hpp"

#include <ATen/Functions.h>

#include "modeling/family/transformer.hpp"
#include "plugins/native/cpu/gemm.hpp"

namespace hexad::native {
namespace {

template <typename T>
void pack_as(const at::Tensor& from, const at::Tensor& to) {
  cpu::pack(static_cast<const T*>(from.const_data_ptr()), from.size(0), from.size(1), static_cast<T*>(to.data_ptr()));
}

at::Tensor packed(const at::Tensor& weight) {
  const at::Tensor from = weight.contiguous();
  const at::Tensor to = at::empty({cpu::packed_elements(from.size(0), from.size(1))}, from.options());
  from.scalar_type() == at::kFloat ? pack_as<float>(from, to) : pack_as<cpu::BFloat16>(from, to);
  return to;
}

}  // namespace

CpuWeights::CpuWeights(const modeling::ModelConfig& config, WeightMap weights) {
  const auto take = [&](const std::string& name) { return std::move(weights.at(name)); };
  const auto matrix = [&](at::Tensor tensor) -> const void* {
    kept_.push_back(packed(tensor));
    return kept_.back().const_data_ptr();
  };
  const auto vector = [&](const at::Tensor& tensor) -> const float* {
    if (!tensor.defined()) return nullptr;
    kept_.push_back(tensor.to(at::kFloat).contiguous());
    return kept_.back().const_data_ptr<float>();
  };
  embedding = matrix(take(modeling::kEmbeddingName));
  head = config.tie_word_embeddings ? embedding : matrix(take(modeling::head_weight_name(config)));
  final_norm = vector(take(modeling::kFinalNormName));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    modeling::LayerWeights w = modeling::layer_weights(config, i, take);
    layers.push_back({.q = matrix(std::move(w.q_proj)),
                      .k = matrix(std::move(w.k_proj)),
                      .v = matrix(std::move(w.v_proj)),
                      .o = matrix(std::move(w.o_proj)),
                      .gate = matrix(std::move(w.gate_proj)),
                      .up = matrix(std::move(w.up_proj)),
                      .down = matrix(std::move(w.down_proj)),
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
