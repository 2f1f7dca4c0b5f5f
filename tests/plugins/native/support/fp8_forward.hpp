// The full forward pass of a dense model in fp32 with the linears of precision fp8: matrices of layers by way of e4m3,
// row by row, and so what they read. What executors in FP8 are measured against.
#pragma once
#include <c10/core/InferenceMode.h>

#include "modeling/family/batch_attention.hpp"
#include "modeling/family/transformer.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"
#include "modeling/op/rms_norm.hpp"
#include "modeling/op/swiglu.hpp"
#include "plugins/native/model/fp8_rows.hpp"
#include "tests/plugins/native/support/reference.hpp"

namespace native_test {

// x [R, C] by way of e4m3, fp32.
inline at::Tensor through_fp8(const at::Tensor& x) {
  const auto rows = hexad::native::empty_fp8_rows(x.size(0), x.size(1), x.device());
  hexad::native::to_fp8_rows(x, rows);
  return hexad::native::from_fp8_rows(rows);
}

struct Fp8Forward {
  const hexad::modeling::ModelConfig& config;
  hexad::modeling::WeightLookup lookup;  // of bf16 values, in any type
  // Rows from the first on whose products read casts; those behind read what was made, as passes of few rows do.
  int64_t casts = std::numeric_limits<int64_t>::max();
  bool rounds = false;     // what products and attention make is rounded to bf16
  bool fp8_cache = false;  // keys and values by way of e4m3 too
  int64_t ranks = 1;       // that share the model: each casts and multiplies its columns of o_proj and down_proj

  // Hidden states [T, H] of one sequence, after the final norm. Under c10::InferenceMode.
  at::Tensor hidden(const at::Tensor& ids) const {
    using namespace hexad::modeling;
    const int64_t tokens = ids.size(0);
    const PackedLayout layout = packed_layout(at::tensor(std::vector<int64_t>{0, tokens}, at::kLong), ids.device());
    PackedAttention plain(config, layout);
    CachedAttention attention(plain, fp8_cache ? OfCache(through_e4m3) : OfCache());
    const Rope rope = make_rope(config.rope, config.head_dim, layout.positions);
    const auto norm = [&](const at::Tensor& x, const at::Tensor& w) {
      return rms_norm(x, w.to(at::kFloat), config.rms_norm_eps);
    };
    const auto heads = [&](const at::Tensor& x) { return x.view({tokens, -1, config.head_dim}); };
    at::Tensor stream = lookup(kEmbeddingName).index_select(0, ids).to(at::kFloat);
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      const LayerWeights w = layer_weights(config, layer, lookup);
      at::Tensor x = norm(stream, w.input_norm);
      at::Tensor q = heads(linear(x, w.q_proj, w.q_bias)), k = heads(linear(x, w.k_proj, w.k_bias));
      const at::Tensor v = heads(linear(x, w.v_proj, w.v_bias));
      if (config.qk_norm) q = norm(q, w.q_norm), k = norm(k, w.k_norm);
      const auto [turned_q, turned_k, same_v] = rotate_heads(q, k, v, rope);
      const at::Tensor attended = rounded(attention.attend(layer, turned_q, turned_k, same_v));
      stream = stream + sum_of_ranks(attended.reshape({tokens, -1}), w.o_proj);
      x = norm(stream, w.post_attention_norm);
      stream = stream + sum_of_ranks(swiglu(linear(x, w.gate_proj, {}), linear(x, w.up_proj, {})), w.down_proj);
    }
    return norm(stream, lookup(kFinalNormName));
  }

  // Entry i is that of token i, entry 0 is 0.
  std::vector<float> logprobs(const std::vector<int32_t>& tokens, at::Device device) const {
    using namespace hexad::modeling;
    const c10::InferenceMode inference;
    const at::Tensor ids = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end()), at::kLong).to(device);
    const at::Tensor targets = next_token_targets(ids, at::tensor(std::vector<int64_t>{0, ids.size(0)}, at::kLong));
    const at::Tensor head = lookup(head_weight_name(config)).to(at::kFloat);
    const auto result = head_logprobs(hidden(ids), head, targets);
    const at::Tensor all = at_predicted_token(result.logprobs).cpu().contiguous();
    return {all.const_data_ptr<float>(), all.const_data_ptr<float>() + all.numel()};
  }

 private:
  at::Tensor rounded(const at::Tensor& x) const { return rounds ? x.to(at::kBFloat16).to(at::kFloat) : x; }

  at::Tensor sum_of_ranks(const at::Tensor& x, const at::Tensor& weight) const {
    const auto parts = x.chunk(ranks, 1), weights = weight.chunk(ranks, 1);
    at::Tensor sum = linear(parts[0], weights[0], {});
    for (size_t rank = 1; rank < parts.size(); ++rank) sum = sum + linear(parts[rank], weights[rank], {});
    return sum;
  }

  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const {
    const int64_t cast = std::min(casts, x.size(0));
    const at::Tensor in = cast == 0 ? x : at::cat({through_fp8(x.slice(0, 0, cast)), x.slice(0, cast)});
    const at::Tensor y = at::linear(in, through_fp8(weight));
    return rounded(bias.defined() ? y + bias.to(at::kFloat) : y);
  }
};

}  // namespace native_test
