// value: the squared error of a value function of every token, clipped around the values before the update, as
// NeMo-RL's MseValueLossFn (PPO, Schulman et al. 2017): scale / 2 * sum of mask * max((v - R)^2, (clip(v, v_old +-
// cliprange) - R)^2) over the number of valid tokens of the global batch. Values stand at the position of their token,
// the first included.
#include <algorithm>
#include <cmath>

#include <hexad/plugin.hpp>

namespace {

using namespace hexad::sdk;

// Sums over valid tokens, to be divided by those of the global batch; least and most are this batch's own.
struct Totals {
  double error = 0, clipped = 0, returns = 0, values = 0, returns_sq = 0, residual_sq = 0, tokens = 0;
  double least = INFINITY, most = -INFINITY;
};

struct Value {
  // `values` are those that the returns were made with, before the update.
  enum Input : size_t { kTokenValues, kValues, kReturns, kTokenMask, kSampleMask };
  static constexpr hexad_tensor_spec inputs[] = {
      token_f32("token_values", HEXAD_SPEC_DIFFERENTIABLE),
      token_f32("values"),
      token_f32("returns"),
      token_f32("token_mask"),
      sample_f32("sample_mask"),
  };
  enum Metric : size_t { kLoss, kClipFrac, kReturnsMean, kMean, kMin, kMax, kReturnsSq, kResidualSq, kSamples };
  static constexpr hexad_metric_spec metrics[] = {
      metric("loss", HEXAD_REDUCE_SUM),
      metric("vf_clipfrac", HEXAD_REDUCE_SUM),
      metric("returns_mean", HEXAD_REDUCE_SUM),
      metric("values_mean", HEXAD_REDUCE_SUM),
      metric("values_min", HEXAD_REDUCE_MIN),
      metric("values_max", HEXAD_REDUCE_MAX),
      metric("returns_sq_mean", HEXAD_REDUCE_SUM),
      metric("residual_sq_mean", HEXAD_REDUCE_SUM),
      metric("num_valid_samples", HEXAD_REDUCE_SUM),
  };

  Value(const Call&, const Config& config)
      : scale_(config.get("scale", 1.0)), cliprange_(config.get("cliprange", 0.0)) {
    if (!(std::isfinite(scale_) && scale_ > 0))
      fail(HEXAD_INVALID_ARGUMENT, "scale: got %g; the weight of the loss is a finite number above 0", scale_);
    if (!(std::isfinite(cliprange_) && cliprange_ >= 0))
      fail(HEXAD_INVALID_ARGUMENT, "cliprange: got %g; give a finite number of at least 0, 0 does not clip",
           cliprange_);
  }

  // Without a range the values before the update are of no use.
  void plan(const Call&, hexad_loss_plan& plan) const {
    if (cliprange_ == 0) plan.used_inputs &= ~(uint64_t{1} << kValues);
  }

  void compute(const Call&, const LossBatch& batch, LossOut& out) const {
    const auto token_mask = batch.f32(kTokenMask), sample_mask = batch.f32(kSampleMask);
    const auto cu = batch.cu_seqlens();
    const double per_token = 1 / (batch.global_valid_tokens() + 1e-8);
    Totals totals;
    for (size_t row = 0; row < sample_mask.size(); ++row) {
      for (auto t = static_cast<size_t>(cu[row]); t < static_cast<size_t>(cu[row + 1]); ++t) {
        const double mask = double{token_mask[t]} * sample_mask[row];
        if (mask == 0) continue;
        out.grad(0)[t] = static_cast<float>(add_token(totals, batch, t, mask) * scale_ * per_token);
      }
    }
    tell(totals, per_token, static_cast<double>(batch.num_sequences()), out);
  }

 private:
  // Returns d error / d value of the token, where error is half of the larger square.
  double add_token(Totals& totals, const LossBatch& batch, size_t t, double mask) const {
    const double value = batch.f32(kTokenValues)[t], target = batch.f32(kReturns)[t], error = value - target;
    double square = error * error, slope = error;
    if (cliprange_ > 0) {
      const double old = batch.f32(kValues)[t];
      const double clipped = std::clamp(value, old - cliprange_, old + cliprange_) - target;
      if (clipped * clipped > square) {
        square = clipped * clipped;
        slope = 0;  // the clipped value does not move with the value
        totals.clipped += mask;
      }
    }
    totals.error += square / 2 * mask;
    totals.returns += target * mask;
    totals.values += value * mask;
    totals.returns_sq += target * target * mask;
    totals.residual_sq += error * error * mask;
    totals.tokens += mask;
    totals.least = std::min(totals.least, value);
    totals.most = std::max(totals.most, value);
    return slope * mask;
  }

  void tell(const Totals& totals, double per_token, double samples, LossOut& out) const {
    out.loss() = totals.error * scale_ * per_token;
    out.set_metric(kLoss, out.loss());
    out.set_metric(kClipFrac, totals.clipped * per_token);
    out.set_metric(kReturnsMean, totals.returns * per_token);
    out.set_metric(kMean, totals.values * per_token);
    const bool any = totals.tokens > 0;  // a batch without a valid token has no least value
    out.set_metric(kMin, any ? totals.least : 0, any);
    out.set_metric(kMax, any ? totals.most : 0, any);
    out.set_metric(kReturnsSq, totals.returns_sq * per_token);
    out.set_metric(kResidualSq, totals.residual_sq * per_token);
    out.set_metric(kSamples, samples);
  }

  double scale_, cliprange_;
};

}  // namespace

HEXAD_CPP_LOSS(Value, "value", "1.0.0", "Apache-2.0")
