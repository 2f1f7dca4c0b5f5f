// Log-probs of generated tokens against a forward pass of modeling over the whole sequences, on the same GPU.
#pragma once
#include <c10/core/InferenceMode.h>

#include <cmath>

#include "benchmarks/generate/shapes.hpp"
#include "modeling/family/batch_attention.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"
#include "tests/plugins/native/support/fp8_forward.hpp"

namespace generate {

struct Finished {
  std::vector<int32_t> prompt, tokens;
  std::vector<float> logprobs;
};

struct Agreement {
  int64_t tokens = 0;
  double largest = 0, mean_ratio = 0;  // of |difference|, and the mean of exp(|difference|): token_mult_prob_error
};

inline Agreement agreement(const std::vector<float>& got, const std::vector<float>& want) {
  Agreement result;
  double sum = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(double(got[i]) - double(want[i]));
    result.largest = difference <= result.largest ? result.largest : std::isnan(difference) ? INFINITY : difference;
    sum += std::exp(difference);
    ++result.tokens;
  }
  result.mean_ratio = result.tokens ? sum / double(result.tokens) : INFINITY;
  return result;
}

// Log-probs of the generated tokens of all sequences, one after the other. fp32 computes in fp32 from the same bf16
// weights, converted layer by layer. fp8_cache: with keys and values by way of e4m3.
inline std::vector<float> forward_logprobs(const hexad::modeling::ModelConfig& config, const Weights& weights,
                                           at::ScalarType dtype, const std::vector<Finished>& sequences,
                                           bool batch_invariant = false, bool fp8_cache = false) {
  using namespace hexad::modeling;
  const c10::InferenceMode inference;
  const auto lookup = [&](const std::string& name) { return weights.at(name).to(dtype); };
  const at::Device device = weights.begin()->second.device();
  std::vector<float> result;
  BlockOptions block;
  block.linear.batch_invariant = batch_invariant;
  LogprobOptions head;
  head.batch_invariant = batch_invariant;
  const AttentionKernel kernel = batch_invariant ? AttentionKernel::batch_invariant : AttentionKernel::cudnn;
  for (const Finished& sequence : sequences) {
    std::vector<int64_t> tokens(sequence.prompt.begin(), sequence.prompt.end());
    tokens.insert(tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
    const at::Tensor offsets = at::tensor(std::vector<int64_t>{0, int64_t(tokens.size())}, at::kLong);
    const at::Tensor ids = at::tensor(tokens, at::kLong).to(device);
    const PackedLayout layout = packed_layout(offsets, device);
    PackedAttention plain(config, layout, kernel);
    using native_test::OfCache;
    native_test::CachedAttention attention(plain, fp8_cache ? OfCache(native_test::through_e4m3) : OfCache());
    const at::Tensor hidden = forward_hidden(config, lookup, ids, layout.positions, attention, block);
    const at::Tensor targets = next_token_targets(ids, offsets);
    const at::Tensor logprobs =
        at_predicted_token(head_logprobs(hidden, lookup(head_weight_name(config)), targets, head).logprobs).cpu();
    const float* data = logprobs.const_data_ptr<float>();
    result.insert(result.end(), data + sequence.prompt.size(), data + logprobs.numel());
  }
  return result;
}

// In fp32 with the casts of precision fp8: of all tokens or, in passes of few rows, of the prompts' alone.
inline std::vector<float> fp8_logprobs(const hexad::modeling::ModelConfig& config, const Weights& weights,
                                       const std::vector<Finished>& sequences, bool few_rows, bool fp8_cache) {
  const auto lookup = [&](const std::string& name) { return weights.at(name); };
  std::vector<float> result;
  for (const Finished& sequence : sequences) {
    std::vector<int32_t> tokens = sequence.prompt;
    tokens.insert(tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
    const auto casts = int64_t(few_rows ? sequence.prompt.size() : tokens.size());
    const native_test::Fp8Forward forward{config, lookup, casts, /*rounds=*/false, fp8_cache};
    const std::vector<float> all = forward.logprobs(tokens, weights.begin()->second.device());
    result.insert(result.end(), all.begin() + int64_t(sequence.prompt.size()), all.end());
  }
  return result;
}

inline std::vector<float> generated_logprobs(const std::vector<Finished>& sequences) {
  std::vector<float> result;
  for (const Finished& sequence : sequences)
    result.insert(result.end(), sequence.logprobs.begin(), sequence.logprobs.end());
  return result;
}

}  // namespace generate
