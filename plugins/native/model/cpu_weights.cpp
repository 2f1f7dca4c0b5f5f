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
  const auto keep = [&](const std::string& name) {
    const at::Tensor weight = std::move(weights.at(name));
    return kept_[name] = weight.dim() == 2 ? packed(weight) : weight.to(at::kFloat).contiguous();
  };
  const auto matrix = [](const at::Tensor& tensor) -> const void* { return tensor.const_data_ptr(); };
  const auto vector = [](const at::Tensor& tensor) -> const float* {
    return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
  };
  embedding = matrix(keep(modeling::kEmbeddingName));
  head = config.tie_word_embeddings ? embedding : matrix(keep(modeling::head_weight_name(config)));
  final_norm = vector(keep(modeling::kFinalNormName));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const modeling::LayerWeights w = modeling::layer_weights(config, i, keep);
    layers.push_back({.q = matrix(w.q_proj),
                      .k = matrix(w.k_proj),
                      .v = matrix(w.v_proj),
                      .o = matrix(w.o_proj),
                      .gate = matrix(w.gate_proj),
                      .up = matrix(w.up_proj),
                      .down = matrix(w.down_proj),
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

WeightMap CpuWeights::unpacked(const modeling::ModelConfig& config, at::ScalarType dtype) const {
  WeightMap result;
  for (const modeling::WeightInfo& info : modeling::weight_table(config)) {
    const at::Tensor& kept = kept_.at(info.hf_name);
    if (info.shape.size() == 2) {
      const at::Tensor panels = kept.view({-1, info.shape[1], cpu::kPanel}).transpose(1, 2);
      result[info.hf_name] = panels.reshape({-1, info.shape[1]}).narrow(0, 0, info.shape[0]);
    } else {
      result[info.hf_name] = kept.to(dtype);
    }
  }
  return result;
}

}  // namespace hexad::native
