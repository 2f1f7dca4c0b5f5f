// preference: the Bradley-Terry loss of a reward model, as NeMo-RL's PreferenceLossFn: -log sigmoid(s_chosen -
// s_rejected) over the scores of pairs.
#include "../pairs.hpp"

namespace {

using namespace hexad::sdk;

struct Preference {
  enum Input : size_t { kScores, kSampleMask, kUnitId };
  static constexpr hexad_tensor_spec inputs[] = {
      sample_f32("sequence_scores", HEXAD_SPEC_DIFFERENTIABLE),
      sample_f32("sample_mask"),
      pairs::unit_ids(),
  };
  enum Metric : size_t { kLoss, kAccuracy, kChosen, kRejected, kNumValidSamples };
  static constexpr hexad_metric_spec metrics[] = {
      metric("loss", HEXAD_REDUCE_SUM),
      metric("accuracy", HEXAD_REDUCE_SUM),
      metric("rewards_chosen_mean", HEXAD_REDUCE_SUM),
      metric("rewards_rejected_mean", HEXAD_REDUCE_SUM),
      metric("num_valid_samples", HEXAD_REDUCE_SUM),
  };

  Preference(const Call&, const Config&) {}

  void compute(const Call&, const LossBatch& batch, LossOut& out) const {
    pairs::require_pairs(view<const int64_t>(batch.tensor(kUnitId)));
    const auto scores = batch.f32(kScores), mask = batch.f32(kSampleMask);
    const std::span<float> grad = out.grad(0);
    const double scale = pairs::per_pair(batch.global_valid_sequences());
    pairs::Totals totals;
    for (size_t row = 0; row < scores.size(); row += 2) {
      const double weight = double{mask[row]} * mask[row + 1];
      const double slope = pairs::add_pair(totals, scores[row], scores[row + 1], 1, weight) * scale;
      grad[row] = static_cast<float>(slope);
      grad[row + 1] = static_cast<float>(-slope);
      totals.valid_rows += mask[row] + mask[row + 1];
    }
    out.loss() = totals.loss * scale;
    out.set_metric(kLoss, out.loss());
    out.set_metric(kAccuracy, totals.correct * scale);
    out.set_metric(kChosen, totals.chosen * scale);
    out.set_metric(kRejected, totals.rejected * scale);
    out.set_metric(kNumValidSamples, totals.valid_rows / 2);
  }
};

}  // namespace

HEXAD_CPP_LOSS(Preference, "preference", "1.0.0", "Apache-2.0")
