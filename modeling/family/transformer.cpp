#include "modeling/family/transformer.hpp"

#include <ATen/Functions.h>

#include "modeling/family/weight_table.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/op/rms_norm.hpp"
#include "modeling/op/swiglu.hpp"

namespace hexad::modeling {
namespace {

at::Tensor attention_part(const ModelConfig& config, int64_t layer, const LayerWeights& w, const at::Tensor& x,
                          const Rope& rope, Attention& attention, const LinearOptions& options) {
  const int64_t tokens = x.size(0);
  at::Tensor q =
      apply_linear(x, w.q_proj, w.q_bias, options.row_tile).view({tokens, config.num_heads, config.head_dim});
  at::Tensor k =
      apply_linear(x, w.k_proj, w.k_bias, options.row_tile).view({tokens, config.num_kv_heads, config.head_dim});
  at::Tensor v =
      apply_linear(x, w.v_proj, w.v_bias, options.row_tile).view({tokens, config.num_kv_heads, config.head_dim});
  if (config.qk_norm) {
    q = rms_norm(q, w.q_norm, config.rms_norm_eps);
    k = rms_norm(k, w.k_norm, config.rms_norm_eps);
  }
  const at::Tensor out = attention.attend(layer, apply_rope(q, rope), apply_rope(k, rope), v);
  return apply_linear(out.reshape({tokens, config.num_heads * config.head_dim}), w.o_proj, w.o_bias, options.row_tile);
}

at::Tensor mlp_part(const LayerWeights& w, const at::Tensor& x, const LinearOptions& options) {
  const at::Tensor gate = apply_linear(x, w.gate_proj, w.gate_bias, options.row_tile);
  const at::Tensor up = apply_linear(x, w.up_proj, w.up_bias, options.row_tile);
  return apply_linear(swiglu(gate, up), w.down_proj, w.down_bias, options.row_tile);
}

}  // namespace

LayerWeights layer_weights(const ModelConfig& config, int64_t layer, const WeightLookup& lookup) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const auto get = [&](const char* name, bool present = true) {
    return present ? lookup(prefix + name) : at::Tensor();
  };
  LayerWeights w;
  w.input_norm = get("input_layernorm.weight");
  w.q_proj = get("self_attn.q_proj.weight");
  w.k_proj = get("self_attn.k_proj.weight");
  w.v_proj = get("self_attn.v_proj.weight");
  w.o_proj = get("self_attn.o_proj.weight");
  w.q_bias = get("self_attn.q_proj.bias", config.qkv_bias);
  w.k_bias = get("self_attn.k_proj.bias", config.qkv_bias);
  w.v_bias = get("self_attn.v_proj.bias", config.qkv_bias);
  w.o_bias = get("self_attn.o_proj.bias", config.output_bias);
  w.q_norm = get("self_attn.q_norm.weight", config.qk_norm);
  w.k_norm = get("self_attn.k_norm.weight", config.qk_norm);
  w.post_attention_norm = get("post_attention_layernorm.weight");
  w.gate_proj = get("mlp.gate_proj.weight");
  w.up_proj = get("mlp.up_proj.weight");
  w.down_proj = get("mlp.down_proj.weight");
  w.gate_bias = get("mlp.gate_proj.bias", config.mlp_bias);
  w.up_bias = get("mlp.up_proj.bias", config.mlp_bias);
  w.down_bias = get("mlp.down_proj.bias", config.mlp_bias);
  return w;
}

at::Tensor embed(const at::Tensor& embedding, const at::Tensor& ids) {
  // The residual stream is not held in 16 bits: rounding it after every block is most of the noise of a pass in bf16.
  const at::Tensor rows = at::embedding(embedding, ids);
  return rows.element_size() < 4 ? rows.to(at::kFloat) : rows;
}

at::Tensor block_forward(const ModelConfig& config, int64_t layer, const LayerWeights& weights,
                         const at::Tensor& hidden, const Rope& rope, Attention& attention,
                         const LinearOptions& options) {
  const at::Tensor normed = rms_norm(hidden, weights.input_norm, config.rms_norm_eps);
  const at::Tensor attended = hidden + attention_part(config, layer, weights, normed, rope, attention, options);
  const at::Tensor normed_again = rms_norm(attended, weights.post_attention_norm, config.rms_norm_eps);
  return attended + mlp_part(weights, normed_again, options);
}

at::Tensor final_norm(const ModelConfig& config, const at::Tensor& weight, const at::Tensor& hidden) {
  return rms_norm(hidden, weight, config.rms_norm_eps);
}

at::Tensor forward_hidden(const ModelConfig& config, const WeightLookup& lookup, const at::Tensor& ids,
                          const at::Tensor& positions, Attention& attention, const LinearOptions& options) {
  const Rope rope = make_rope(config.rope, config.head_dim, positions);
  at::Tensor hidden = embed(lookup(kEmbeddingName), ids);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    hidden = block_forward(config, layer, layer_weights(config, layer, lookup), hidden, rope, attention, options);
  }
  return final_norm(config, lookup(kFinalNormName), hidden);
}

}  // namespace hexad::modeling
