#include "plugins/native/cuda/fused_weights.hpp"

#include "modeling/family/transformer.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::native::cuda {
namespace {

at::Tensor together(const std::vector<at::Tensor>& parts) {
  const at::Tensor all = modeling::adjacent(parts, 0);
  TORCH_INTERNAL_ASSERT(all.defined(), "weights that a product takes together do not lie side by side");
  return all;
}

}  // namespace

FusedWeights::FusedWeights(const modeling::ModelConfig& config, const WeightMap& weights, const Shard& shard) {
  const auto lookup = [&](const std::string& name) { return weights.at(name); };
  embedding = lookup(modeling::kEmbeddingName);
  head = lookup(modeling::head_weight_name(config));
  if (config.tie_word_embeddings) {
    const modeling::Range rows = head_rows(config, shard);
    head = head.narrow(0, rows.begin, rows.size());
  }
  final_norm = lookup(modeling::kFinalNormName);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const modeling::LayerWeights w = modeling::layer_weights(config, i, lookup);
    layers.push_back({.input_norm = w.input_norm,
                      .post_attention_norm = w.post_attention_norm,
                      .q_norm = w.q_norm,
                      .k_norm = w.k_norm,
                      .qkv = together({w.q_proj, w.k_proj, w.v_proj}),
                      .qkv_bias = w.q_bias.defined() ? together({w.q_bias, w.k_bias, w.v_bias}) : at::Tensor(),
                      .output = w.o_proj,
                      .gate_up = together({w.gate_proj, w.up_proj}),
                      .down = w.down_proj});
    if (w.down_proj.scalar_type() != at::kFloat8_e4m3fn) continue;
    const modeling::LayerWeights scales =
        modeling::layer_weights(config, i, [&](const std::string& name) -> at::Tensor {
          const auto found = weights.find(scales_name(name));
          return found == weights.end() ? at::Tensor() : found->second;
        });
    layers.back().qkv_scales = together({scales.q_proj, scales.k_proj, scales.v_proj});
    layers.back().output_scales = scales.o_proj;
    layers.back().gate_up_scales = together({scales.gate_proj, scales.up_proj});
    layers.back().down_scales = scales.down_proj;
  }
}

}  // namespace hexad::native::cuda
