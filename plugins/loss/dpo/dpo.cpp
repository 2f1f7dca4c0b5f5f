// dpo: direct preference optimization (Rafailov et al. 2023), as NeMo-RL's DPOLossFn. The reward of an answer is
// sum over its tokens of log pi - log pi_ref (or their mean); the loss -log sigmoid(beta * (r_chosen - r_rejected)),
// with a likelihood term on the chosen answers where that has a weight.
#include <algorithm>

#include "../pairs.hpp"

namespace {

using namespace hexad::sdk;

struct Options {
  double beta, preference_weight, sft_weight;
  bool average_rewards, average_sft;
};

class Dpo {
 public:
  enum Input : size_t { kLogprobs, kReference, kTokenMask, kSampleMask, kUnitId };
  static constexpr hexad_tensor_spec inputs[] = {
      token_f32("logprobs", HEXAD_SPEC_DIFFERENTIABLE),
      token_f32("reference_policy_logprobs"),
      token_f32("token_mask"),
      sample_f32("sample_mask"),
      pairs::unit_ids(),
  };
  enum Metric : size_t { kLoss, kSftLoss, kPreferenceLoss, kAccuracy, kChosen, kRejected, kNumValidSamples };
  static constexpr hexad_metric_spec metrics[] = {
      metric("loss", HEXAD_REDUCE_SUM),
      metric("sft_loss", HEXAD_REDUCE_SUM),
      metric("preference_loss", HEXAD_REDUCE_SUM),
      metric("accuracy", HEXAD_REDUCE_SUM),
      metric("rewards_chosen_mean", HEXAD_REDUCE_SUM),
      metric("rewards_rejected_mean", HEXAD_REDUCE_SUM),
      metric("num_valid_samples", HEXAD_REDUCE_SUM),
  };

  Dpo(const Call&, const Config& config) {
    options_.beta = config.get("reference_policy_kl_penalty", 0.05);
    options_.preference_weight = config.get("preference_loss_weight", 1.0);
    options_.sft_weight = config.get("sft_loss_weight", 0.0);
    options_.average_rewards = config.get("preference_average_log_probs", false);
    options_.average_sft = config.get("sft_average_log_probs", options_.average_rewards);
  }

  void compute(const Call&, const LossBatch& batch, LossOut& out) const;

 private:
  Options options_;
};

// The tokens of one row that count: the first position of a sequence has no log-prob.
struct Row {
  std::span<const float> logprobs, reference, mask;

  double tokens() const {
    double sum = 0;
    for (const float weight : mask) sum += weight;
    return sum;
  }
  double reward() const {
    double sum = 0;
    for (size_t t = 0; t < mask.size(); ++t) sum += (double{logprobs[t]} - reference[t]) * mask[t];
    return sum;
  }
  double nll() const {
    double sum = 0;
    for (size_t t = 0; t < mask.size(); ++t) sum -= double{logprobs[t]} * mask[t];
    return sum;
  }
};

Row row_of(const LossBatch& batch, size_t index) {
  const auto cu = batch.cu_seqlens();
  const size_t end = static_cast<size_t>(cu[index + 1]), begin = std::min(static_cast<size_t>(cu[index]) + 1, end);
  const auto part = [&](size_t input) { return batch.f32(input).subspan(begin, end - begin); };
  return {part(Dpo::kLogprobs), part(Dpo::kReference), part(Dpo::kTokenMask)};
}

void set_gradient(const LossBatch& batch, size_t index, const Row& row, double slope, std::span<float> grad) {
  const size_t first = static_cast<size_t>(batch.cu_seqlens()[index + 1]) - row.mask.size();
  for (size_t t = 0; t < row.mask.size(); ++t) grad[first + t] = static_cast<float>(slope * row.mask[t]);
}

void Dpo::compute(const Call&, const LossBatch& batch, LossOut& out) const {
  pairs::require_pairs(view<const int64_t>(batch.tensor(kUnitId)));
  const auto sample_mask = batch.f32(kSampleMask);
  const double scale = pairs::per_pair(batch.global_valid_sequences());
  pairs::Totals totals;
  double sft = 0;
  for (size_t i = 0; i < sample_mask.size(); i += 2) {
    const Row chosen = row_of(batch, i), rejected = row_of(batch, i + 1);
    const double weight = double{sample_mask[i]} * sample_mask[i + 1];
    const double length_c = std::max(chosen.tokens(), 1.0), length_r = std::max(rejected.tokens(), 1.0);
    const double per_c = options_.average_rewards ? 1 / length_c : 1,
                 per_r = options_.average_rewards ? 1 / length_r : 1;
    const double slope =
        pairs::add_pair(totals, chosen.reward() * per_c, rejected.reward() * per_r, options_.beta, weight);
    const double per_sft = options_.average_sft ? 1 / length_c : 1;
    if (options_.sft_weight != 0) sft += chosen.nll() * per_sft * weight;
    const double of_sft = options_.sft_weight * per_sft * weight, of_pair = options_.preference_weight * slope;
    set_gradient(batch, i, chosen, (of_pair * per_c - of_sft) * scale, out.grad(0));
    set_gradient(batch, i + 1, rejected, -of_pair * per_r * scale, out.grad(0));
    totals.valid_rows += sample_mask[i] + sample_mask[i + 1];
  }
  out.loss() = (options_.preference_weight * totals.loss + options_.sft_weight * sft) * scale;
  out.set_metric(kLoss, out.loss());
  out.set_metric(kSftLoss, sft * scale);
  out.set_metric(kPreferenceLoss, totals.loss * scale);
  out.set_metric(kAccuracy, totals.correct * scale);
  out.set_metric(kChosen, totals.chosen * scale);
  out.set_metric(kRejected, totals.rejected * scale);
  out.set_metric(kNumValidSamples, totals.valid_rows / 2);
}

}  // namespace

HEXAD_CPP_LOSS(Dpo, "dpo", "1.0.0", "Apache-2.0")
