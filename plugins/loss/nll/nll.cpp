// nll: the negative log-likelihood of supervised fine-tuning, as NeMo-RL's NLLLossFn: the sum of -logprob * mask over
// the number of valid tokens of the global batch.
#include <hexad/plugin.hpp>

namespace {

using namespace hexad::sdk;

struct Nll {
  enum Input : size_t { kLogprobs, kTokenMask, kSampleMask };
  static constexpr hexad_tensor_spec inputs[] = {
      token_f32("logprobs", HEXAD_SPEC_DIFFERENTIABLE),
      token_f32("token_mask"),
      sample_f32("sample_mask"),
  };
  enum Metric : size_t { kLoss, kNumUnmaskedTokens, kNumValidSamples };
  static constexpr hexad_metric_spec metrics[] = {
      metric("loss", HEXAD_REDUCE_SUM),
      metric("num_unmasked_tokens", HEXAD_REDUCE_SUM),
      metric("num_valid_samples", HEXAD_REDUCE_SUM),
  };

  Nll(const Call&, const Config&) {}

  void compute(const Call&, const LossBatch& batch, LossOut& out) const {
    const auto logprobs = batch.f32(kLogprobs), token_mask = batch.f32(kTokenMask),
               sample_mask = batch.f32(kSampleMask);
    const std::span<float> grad = out.grad(0);
    const auto cu = batch.cu_seqlens();
    const double scale = 1 / (batch.global_valid_tokens() + 1e-8);
    double sum = 0, tokens = 0, samples = 0;
    for (size_t row = 0; row < sample_mask.size(); ++row) {
      samples += sample_mask[row];
      // The first position of a sequence has no log-prob.
      for (auto t = static_cast<size_t>(cu[row]) + 1; t < static_cast<size_t>(cu[row + 1]); ++t) {
        const double mask = double{token_mask[t]} * sample_mask[row];
        sum -= logprobs[t] * mask;
        tokens += mask;
        grad[t] = static_cast<float>(-mask * scale);
      }
    }
    out.loss() = sum * scale;
    out.set_metric(kLoss, out.loss());
    out.set_metric(kNumUnmaskedTokens, tokens);
    out.set_metric(kNumValidSamples, samples);
  }
};

}  // namespace

HEXAD_CPP_LOSS(Nll, "nll", "1.0.0", "Apache-2.0")
