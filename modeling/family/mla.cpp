#include "modeling/family/mla.hpp"

#include <ATen/Functions.h>

#include "modeling/op/linear.hpp"
#include "modeling/op/rms_norm.hpp"

namespace hexad::modeling {
namespace {

constexpr double kLatentEps = 1e-6;

// x [T, heads, D] with its rotated pairs side by side -> with their halves apart, as apply_rope takes them.
at::Tensor halves_apart(const at::Tensor& x) {
  return x.unflatten(-1, {x.size(-1) / 2, 2}).transpose(-1, -2).flatten(-2);
}

at::Tensor rotated(const MlaConfig& config, const at::Tensor& x, const Rope& rope) {
  return apply_rope(config.rope_interleave ? halves_apart(x) : x, rope);
}

// The features of this rank's heads: [T, heads, width].
at::Tensor heads_of(const at::Tensor& latent, const at::Tensor& weight, int64_t width, const TensorParallel& tp,
                    const LinearOptions& options) {
  return column_parallel(latent, {weight}, {at::Tensor()}, tp, options)[0].unflatten(1, {-1, width});
}

at::Tensor queries(const MlaConfig& config, const MlaWeights& w, const at::Tensor& latent, const TensorParallel& tp,
                   const LinearOptions& options) {
  if (config.q_lora_rank == 0) return heads_of(latent, w.q_proj, config.qk_head_dim(), tp, options);
  return heads_of(rms_norm(latent, w.q_a_norm, kLatentEps), w.q_b_proj, config.qk_head_dim(), tp, options);
}

}  // namespace

MlaLatents mla_latents(const MlaConfig& c, const MlaWeights& w, const at::Tensor& x, const LinearOptions& options) {
  return {c.q_lora_rank == 0 ? x : apply_linear(x, w.q_a_proj, w.q_a_bias, options),
          apply_linear(x, w.kv_a_proj, w.kv_a_bias, options)};
}

MlaInputs mla_inputs(const MlaConfig& c, const MlaWeights& w, const MlaLatents& latents, const Rope& rope,
                     const TensorParallel& tp, const LinearOptions& options) {
  const at::Tensor q = queries(c, w, latents.q, tp, options);
  const std::vector<at::Tensor> q_parts = q.split_with_sizes({c.nope_head_dim, c.rope_head_dim}, -1);

  const std::vector<at::Tensor> kv = latents.kv.split_with_sizes({c.kv_lora_rank, c.rope_head_dim}, -1);
  const at::Tensor expanded =
      heads_of(rms_norm(kv[0], w.kv_a_norm, kLatentEps), w.kv_b_proj, c.nope_head_dim + c.v_head_dim, tp, options);
  const std::vector<at::Tensor> kv_parts = expanded.split_with_sizes({c.nope_head_dim, c.v_head_dim}, -1);
  // Every rank's heads use the shared part of the key: its gradient is the sum over them.
  const at::Tensor shared = tp.shards_tokens() ? gather_tokens(kv[1], tp.group) : copy_to_ranks(kv[1], tp.group);
  const at::Tensor k_rope = rotated(c, shared.unsqueeze(1), rope).expand({-1, q.size(1), -1});

  const at::Tensor q_full = at::cat({q_parts[0], rotated(c, q_parts[1], rope)}, -1);
  return {c.logit_scale == 1.0 ? q_full : q_full * c.logit_scale, at::cat({kv_parts[0], k_rope}, -1), kv_parts[1]};
}

}  // namespace hexad::modeling
