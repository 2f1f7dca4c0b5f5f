#include "modeling/family/transformer.hpp"

#include <ATen/Functions.h>

#include "modeling/family/weight_table.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/rms_norm.hpp"
#include "modeling/op/swiglu.hpp"

namespace hexad::modeling {
namespace {

// Attention of what one projection made: q, k and v.
at::Tensor attend(int64_t layer, Attention& attention, const Tensors& qkv, const BlockOptions& options) {
  const auto run = [layer, &attention](const Tensors& in) -> Tensors {
    return {attention.attend(layer, in[0], in[1], in[2])};
  };
  return (options.recompute.core_attention ? checkpoint(run, qkv, {}) : run(qkv))[0];
}

at::Tensor latent_attention_part(const ModelConfig& config, int64_t layer, const LayerWeights& w, const at::Tensor& x,
                                 const Rope& rope, Attention& attention, const BlockOptions& options) {
  const auto up = [&mla = *config.mla, w = w.mla, rope, tp = options.tp,
                   linear = options.linear](const Tensors& latents) -> Tensors {
    const MlaInputs in = mla_inputs(mla, w, {latents[0], latents[1]}, rope, tp, linear);
    return {in.q, in.k, in.v};
  };
  const MlaLatents latents = mla_latents(*config.mla, w.mla, x, options.linear);
  at::Tensor out;
  if (options.recompute.latent_up) {
    DiscardedOutputs qkv(up, {latents.q, latents.kv},
                         {w.mla.q_proj, w.mla.q_a_norm, w.mla.q_b_proj, w.mla.kv_a_norm, w.mla.kv_b_proj});
    out = attend(layer, attention, qkv.outputs(), options);
    qkv.discard_until(out);
  } else {
    out = attend(layer, attention, up({latents.q, latents.kv}), options);
  }
  return row_parallel(out.flatten(1), w.o_proj, w.o_bias, options.tp, options.linear);
}

at::Tensor attention_part(const ModelConfig& config, int64_t layer, const LayerWeights& w, const at::Tensor& x,
                          const Rope& rope, Attention& attention, const BlockOptions& options) {
  if (config.mla) return latent_attention_part(config, layer, w, x, rope, attention, options);
  const std::vector<at::Tensor> qkv =
      column_parallel(x, {w.q_proj, w.k_proj, w.v_proj}, {w.q_bias, w.k_bias, w.v_bias}, options.tp, options.linear);
  const int64_t tokens = qkv[0].size(0);
  const auto heads = [&](const at::Tensor& features) { return features.view({tokens, -1, config.head_dim}); };
  at::Tensor q = heads(qkv[0]), k = heads(qkv[1]);
  const at::Tensor v = heads(qkv[2]);
  if (config.qk_norm) {
    q = rms_norm(q, w.q_norm, config.rms_norm_eps);
    k = rms_norm(k, w.k_norm, config.rms_norm_eps);
  }
  const auto [turned_q, turned_k, same_v] = rotate_heads(q, k, v, rope);
  const at::Tensor out = attend(layer, attention, {turned_q, turned_k, same_v}, options);
  return row_parallel(out.reshape({tokens, -1}), w.o_proj, w.o_bias, options.tp, options.linear);
}

at::Tensor run_mlp(const LayerWeights& w, const at::Tensor& x, const TensorParallel& tp, const LinearOptions& linear) {
  const std::vector<at::Tensor> parts =
      column_parallel(x, {w.gate_proj, w.up_proj}, {w.gate_bias, w.up_bias}, tp, linear);
  return row_parallel(swiglu(parts[0], parts[1]), w.down_proj, w.down_bias, tp, linear);
}

at::Tensor mlp_part(const LayerWeights& w, const at::Tensor& x, const BlockOptions& options) {
  if (!options.recompute.mlp) return run_mlp(w, x, options.tp, options.linear);
  const auto run = [w, tp = options.tp, linear = options.linear](const Tensors& in) -> Tensors {
    return {run_mlp(w, in[0], tp, linear)};
  };
  return checkpoint(run, {x}, {w.gate_proj, w.up_proj, w.gate_bias, w.up_bias, w.down_proj, w.down_bias})[0];
}

// The part of the block that is alone in using a norm, whose output is thrown away until the backward pass.
template <typename Part>
at::Tensor recomputed_norm(const at::Tensor& hidden, const at::Tensor& weight, double eps, Part&& part) {
  const auto norm = [weight, eps](const Tensors& in) -> Tensors { return {rms_norm(in[0], weight, eps)}; };
  DiscardedOutputs normed(norm, {hidden}, {weight});
  const at::Tensor out = part(normed.outputs()[0]);
  normed.discard_until(out);
  return out;
}

// Weights of one layer by the end of their names; undefined where `present` is false.
using LayerLookup = std::function<at::Tensor(const std::string& name, bool present)>;

MlaWeights mla_weights(const ModelConfig& config, const LayerLookup& get) {
  const bool lora = config.mla->q_lora_rank > 0;
  MlaWeights w;
  w.q_proj = get("self_attn.q_proj.weight", !lora);
  w.q_a_proj = get("self_attn.q_a_proj.weight", lora);
  w.q_a_bias = get("self_attn.q_a_proj.bias", lora && config.qkv_bias);
  w.q_a_norm = get("self_attn.q_a_layernorm.weight", lora);
  w.q_b_proj = get("self_attn.q_b_proj.weight", lora);
  w.kv_a_proj = get("self_attn.kv_a_proj_with_mqa.weight", true);
  w.kv_a_bias = get("self_attn.kv_a_proj_with_mqa.bias", config.qkv_bias);
  w.kv_a_norm = get("self_attn.kv_a_layernorm.weight", true);
  w.kv_b_proj = get("self_attn.kv_b_proj.weight", true);
  return w;
}

MoeWeights moe_weights(const MoeConfig& config, const LayerLookup& get, const Range& experts) {
  const MoeFamily& names = *config.family;
  const std::string block = names.block;
  MoeWeights w;
  w.router = get(block + "gate.weight", true);
  if (names.expert_bias) w.expert_bias = get(block + names.expert_bias, true);
  w.experts.local = experts;
  for (int64_t e = experts.begin; e < experts.end; ++e) {
    const std::string expert = block + "experts." + std::to_string(e) + ".";
    w.experts.gate.push_back(get(expert + names.gate + ".weight", true));
    w.experts.up.push_back(get(expert + names.up + ".weight", true));
    w.experts.down.push_back(get(expert + names.down + ".weight", true));
  }
  if (config.shared_intermediate_size == 0) return w;
  const std::string shared = block + names.shared;
  w.shared_gate = get(shared + "gate_proj.weight", true);
  w.shared_up = get(shared + "up_proj.weight", true);
  w.shared_down = get(shared + "down_proj.weight", true);
  if (names.shared_scale) w.shared_scale = get(block + names.shared_scale, true);
  return w;
}

}  // namespace

LayerWeights layer_weights(const ModelConfig& config, int64_t layer, const WeightLookup& lookup,
                           std::optional<Range> experts) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const auto get = [&](const std::string& name, bool present = true) {
    return present ? lookup(prefix + name) : at::Tensor();
  };
  const bool latent = config.mla.has_value(), dense = !config.has_experts(layer);
  LayerWeights w;
  w.input_norm = get("input_layernorm.weight");
  w.post_attention_norm = get("post_attention_layernorm.weight");
  if (latent) w.mla = mla_weights(config, get);
  if (!dense) w.moe = moe_weights(*config.moe, get, experts.value_or(Range{0, config.moe->num_experts}));
  w.q_proj = get("self_attn.q_proj.weight", !latent);
  w.k_proj = get("self_attn.k_proj.weight", !latent);
  w.v_proj = get("self_attn.v_proj.weight", !latent);
  w.o_proj = get("self_attn.o_proj.weight");
  w.q_bias = get("self_attn.q_proj.bias", !latent && config.qkv_bias);
  w.k_bias = get("self_attn.k_proj.bias", !latent && config.qkv_bias);
  w.v_bias = get("self_attn.v_proj.bias", !latent && config.qkv_bias);
  w.o_bias = get("self_attn.o_proj.bias", config.output_bias);
  w.q_norm = get("self_attn.q_norm.weight", config.qk_norm);
  w.k_norm = get("self_attn.k_norm.weight", config.qk_norm);
  w.gate_proj = get("mlp.gate_proj.weight", dense);
  w.up_proj = get("mlp.up_proj.weight", dense);
  w.down_proj = get("mlp.down_proj.weight", dense);
  w.gate_bias = get("mlp.gate_proj.bias", dense && config.mlp_bias);
  w.up_bias = get("mlp.up_proj.bias", dense && config.mlp_bias);
  w.down_bias = get("mlp.down_proj.bias", dense && config.mlp_bias);
  return w;
}

at::Tensor embed(const at::Tensor& embedding, const at::Tensor& ids) {
  // The residual stream is not held in 16 bits: rounding it after every block is most of the noise of a pass in bf16.
  if (cuda::has_kernels(embedding) && embedding.size(1) % 8 == 0 && !at::GradMode::is_enabled())
    return cuda::embed_rows(embedding, ids);
  const at::Tensor rows = at::embedding(embedding, ids);
  return rows.element_size() < 4 ? rows.to(at::kFloat) : rows;
}

at::Tensor Residual::sum() const { return delta.defined() ? residual_add(hidden, delta) : hidden; }

Residual block_residual(const ModelConfig& config, int64_t layer, const LayerWeights& weights, const Residual& in,
                        const Rope& rope, Attention& attention, const BlockOptions& options, const MoeRuns& moe_runs) {
  const auto attend = [&](const at::Tensor& x) {
    return attention_part(config, layer, weights, x, rope, attention, options);
  };
  const auto feed_forward = [&](const at::Tensor& x) {
    if (!config.has_experts(layer)) return mlp_part(weights, x, options);
    MoeRun run = moe_runs ? moe_runs(layer) : MoeRun();
    run.recompute = options.recompute;
    run.fp8_experts = options.linear.fp8 != Fp8::off && !is_blockwise(options.linear.fp8);
    run.fp8_casts = options.linear.fp8_casts;
    return moe_forward(config.moe->routing, weights.moe, x, run, options.linear.row_tile, options.tp);
  };
  const double eps = config.rms_norm_eps;
  if (options.recompute.norms) {
    const at::Tensor hidden = in.sum();
    const at::Tensor attended = residual_add(hidden, recomputed_norm(hidden, weights.input_norm, eps, attend));
    return {attended, recomputed_norm(attended, weights.post_attention_norm, eps, feed_forward)};
  }
  const auto [hidden, normed] = add_rms_norm(in.hidden, in.delta, weights.input_norm, eps);
  const auto [attended, normed_again] = add_rms_norm(hidden, attend(normed), weights.post_attention_norm, eps);
  return {attended, feed_forward(normed_again)};
}

at::Tensor block_forward(const ModelConfig& config, int64_t layer, const LayerWeights& weights,
                         const at::Tensor& hidden, const Rope& rope, Attention& attention, const BlockOptions& options,
                         const MoeRuns& moe_runs) {
  return block_residual(config, layer, weights, {hidden, {}}, rope, attention, options, moe_runs).sum();
}

at::Tensor final_norm(const ModelConfig& config, const at::Tensor& weight, const at::Tensor& hidden) {
  return rms_norm(hidden, weight, config.rms_norm_eps);
}

at::Tensor forward_hidden(const ModelConfig& config, const WeightLookup& lookup, const at::Tensor& ids,
                          const at::Tensor& positions, Attention& attention, const BlockOptions& options,
                          const MoeRuns& moe_runs) {
  const Rope rope = make_rope(config.rope, config.head_dim, positions);
  Residual stream{embed(lookup(kEmbeddingName), ids), {}};
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    stream =
        block_residual(config, layer, layer_weights(config, layer, lookup), stream, rope, attention, options, moe_runs);
  }
  return final_norm(config, lookup(kFinalNormName), stream.sum());
}

}  // namespace hexad::modeling
