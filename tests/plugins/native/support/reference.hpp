// The full forward pass: a whole sequence at once, without a cache, and modeling's log-prob head.
#pragma once
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "modeling/family/batch_attention.hpp"
#include "modeling/family/transformer.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

namespace native_test {

// Keys and values by way of e4m3: what a cache of kv_cache_dtype fp8 makes of them.
inline at::Tensor through_e4m3(const at::Tensor& x) {
  return x.clamp(-448, 448).to(at::kFloat8_e4m3fn).to(x.scalar_type());
}

// What a cache makes of keys or values [T, Hkv, D]; null: it keeps them as they are.
using OfCache = std::function<at::Tensor(const at::Tensor&)>;

// `attention` over what a cache makes of keys and then of values.
class CachedAttention : public hexad::modeling::Attention {
 public:
  CachedAttention(hexad::modeling::Attention& attention, OfCache of_cache)
      : attention_(attention), of_cache_(std::move(of_cache)) {}
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override {
    if (!of_cache_) return attention_.attend(layer, q, k, v);
    const at::Tensor keys = of_cache_(k), values = of_cache_(v);
    return attention_.attend(layer, q, keys, values);
  }

 private:
  hexad::modeling::Attention& attention_;
  OfCache of_cache_;
};

// Hidden states [T, H] of a whole sequence, after the final norm. Under c10::InferenceMode.
inline at::Tensor full_hidden(const hexad::modeling::ModelConfig& config, const Weights& weights,
                              const std::vector<int32_t>& tokens, const hexad::modeling::MoeRuns& moe_runs = {},
                              const OfCache& of_cache = {}) {
  const at::Tensor ids = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end()), at::kLong);
  const at::Tensor offsets = at::tensor(std::vector<int64_t>{0, ids.size(0)}, at::kLong);
  const hexad::modeling::PackedLayout layout = hexad::modeling::packed_layout(offsets, at::kCPU);
  hexad::modeling::PackedAttention plain(config, layout);
  CachedAttention attention(plain, of_cache);
  const auto lookup = [&](const std::string& name) { return weights.at(name); };
  return hexad::modeling::forward_hidden(config, lookup, ids, layout.positions, attention, {}, moe_runs);
}

// Log-probs of tokens[1], tokens[2], ...: entry i is that of token i, entry 0 is 0.
inline std::vector<float> full_forward(const hexad::modeling::ModelConfig& config, const Weights& weights,
                                       const std::vector<int32_t>& tokens,
                                       const hexad::modeling::LogprobOptions& options = {},
                                       const OfCache& of_cache = {}, const hexad::modeling::MoeRuns& moe_runs = {}) {
  const c10::InferenceMode inference;
  const at::Tensor ids = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end()), at::kLong);
  const at::Tensor offsets = at::tensor(std::vector<int64_t>{0, ids.size(0)}, at::kLong);
  const at::Tensor hidden = full_hidden(config, weights, tokens, moe_runs, of_cache);
  const at::Tensor targets = hexad::modeling::next_token_targets(ids, offsets);
  const at::Tensor head = weights.at(hexad::modeling::head_weight_name(config));
  const auto result = hexad::modeling::head_logprobs(hidden, head, targets, options);
  const at::Tensor logprobs = hexad::modeling::at_predicted_token(result.logprobs).contiguous();
  return {logprobs.const_data_ptr<float>(), logprobs.const_data_ptr<float>() + logprobs.numel()};
}

inline Weights in_dtype(const Weights& weights, at::ScalarType dtype) {
  Weights result;
  for (const auto& [name, tensor] : weights) result[name] = tensor.to(dtype);
  return result;
}

// How far log-probs lie apart: the largest difference, and the mean of exp(|difference|) (NeMo-RL's
// token_mult_prob_error). nan counts as infinitely far.
struct Gap {
  double largest = 0, sum_of_ratios = 0;
  int64_t count = 0;

  void add(float got, float want) {
    const double difference = std::abs(double(got) - double(want));
    largest = difference <= largest ? largest : std::isnan(difference) ? INFINITY : difference;
    sum_of_ratios += std::exp(difference);
    ++count;
  }
  double mult_prob_error() const { return sum_of_ratios / double(count); }
};

}  // namespace native_test
