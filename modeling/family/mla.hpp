// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries, and keys and values together, come from
// low-rank latents; the rotated part of the key is shared by all heads.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lib/model/family/mla_config.hpp"
#include "modeling/op/rope.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

namespace hexad::modeling {

using model::MlaConfig;

// Weights of one block, [out, in]; biases undefined when there are none.
struct MlaWeights {
  at::Tensor q_proj;                                  // without q_lora_rank
  at::Tensor q_a_proj, q_a_bias, q_a_norm, q_b_proj;  // with it
  at::Tensor kv_a_proj, kv_a_bias, kv_a_norm, kv_b_proj;
};

// q and k [T, heads, qk_head_dim], v [T, heads, v_head_dim]. q carries logit_scale, so that attention with its usual
// scale, 1 / sqrt(qk_head_dim), is what the model wants.
struct MlaInputs {
  at::Tensor q, k, v;
};

// What the layer's input becomes first: queries [T, q_lora_rank] (without that rank the input itself), keys and values
// [T, kv_lora_rank + rope_head_dim].
struct MlaLatents {
  at::Tensor q, kv;
};

// x [T, H], or this rank's [T / ranks, H] with sequence parallelism; rope is of all T tokens. The norms of the latents
// have their own epsilon, 1e-6, as in transformers. Tensor parallel ranks make the latents each for itself, and from
// them the heads that they share out: then q, k and v are of this rank's heads, those of the rows that it has of q_proj
// or q_b_proj and of kv_b_proj.
MlaLatents mla_latents(const MlaConfig& config, const MlaWeights& weights, const at::Tensor& x,
                       const LinearOptions& options = {});
MlaInputs mla_inputs(const MlaConfig& config, const MlaWeights& weights, const MlaLatents& latents, const Rope& rope,
                     const TensorParallel& tp = {}, const LinearOptions& options = {});

}  // namespace hexad::modeling
