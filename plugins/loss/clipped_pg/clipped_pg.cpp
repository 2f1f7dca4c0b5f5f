// clipped_pg: the policy-gradient loss of GRPO and its relatives (PPO, DAPO, GSPO, CISPO, REINFORCE, dual clip,
// truncated importance sampling, KL to a reference), as NeMo-RL's ClippedPGLossFn defines it, over packed sequences in
// host memory.
#include <hexad/plugin.hpp>

#include <vector>

#include "importance.hpp"
#include "metrics.hpp"
#include "options.hpp"
#include "sequence.hpp"
#include "terms.hpp"

namespace clipped_pg {

using namespace hexad::sdk;

enum Input : size_t {
  kLogprobs,
  kUnfiltered,
  kPrevious,
  kGeneration,
  kReference,
  kAdvantages,
  kTokenMask,
  kSampleMask,
  kRewards,
  kInputCount
};

class ClippedPg {
 public:
  static constexpr hexad_tensor_spec inputs[] = {
      token_f32("logprobs", HEXAD_SPEC_DIFFERENTIABLE),
      token_f32("logprobs_unfiltered", HEXAD_SPEC_DIFFERENTIABLE | HEXAD_SPEC_OPTIONAL),
      token_f32("prev_logprobs"),
      token_f32("generation_logprobs"),
      token_f32("reference_policy_logprobs"),
      token_f32("advantages"),
      token_f32("token_mask"),
      sample_f32("sample_mask"),
      sample_f32("rewards", HEXAD_SPEC_OPTIONAL),
  };
  static_assert(std::size(inputs) == kInputCount);
  static constexpr auto& metrics = kMetricSpecs;

  ClippedPg(const Call&, const Config& config) : options_(read_options(config)) {}

  // Drops the inputs and metrics that this configuration has no use for.
  void plan(const Call&, hexad_loss_plan& plan) const {
    const auto drop = [](uint64_t& bits, size_t bit) { bits &= ~(uint64_t{1} << bit); };
    if (options_.kl_penalty == 0) drop(plan.used_inputs, kReference), drop(plan.used_inputs, kUnfiltered);
    if (options_.force_on_policy) drop(plan.used_inputs, kPrevious);
    if (options_.positive_nll_weight == 0) drop(plan.used_inputs, kRewards);
    if (options_.truncation == Truncation::none) drop(plan.used_metrics, kIsOobRatio);
  }

  void compute(const Call&, const LossBatch& batch, LossOut& out) const;

 private:
  std::vector<Sequence> sequences(const LossBatch& batch, LossOut& out) const;
  void report(const Totals& totals, LossOut& out) const;

  Options options_;
};

std::vector<Sequence> ClippedPg::sequences(const LossBatch& batch, LossOut& out) const {
  std::array<std::span<const float>, kInputCount> arrays;
  for (size_t i = 0; i < kInputCount; ++i) arrays[i] = batch.f32(i);
  const std::span<float> grad = out.grad(0), grad_unfiltered = out.grad(1);
  const auto cu = batch.cu_seqlens();
  std::vector<Sequence> all(static_cast<size_t>(batch.num_sequences()));
  for (size_t row = 0; row < all.size(); ++row) {
    const auto first = static_cast<size_t>(cu[row]) + 1, end = static_cast<size_t>(cu[row + 1]);
    const size_t count = end > first ? end - first : 0;
    const auto part = [&](auto array) {
      return array.empty() || count == 0 ? array.subspan(0, 0) : array.subspan(first, count);
    };
    Sequence& sequence = all[row];
    sequence.logprobs = part(arrays[kLogprobs]);
    sequence.unfiltered = part(arrays[kUnfiltered]);
    sequence.previous = part(arrays[kPrevious]);
    sequence.generation = part(arrays[kGeneration]);
    sequence.reference = part(arrays[kReference]);
    sequence.advantages = part(arrays[kAdvantages]);
    sequence.mask = part(arrays[kTokenMask]);
    sequence.grad = part(grad);
    sequence.grad_unfiltered = part(grad_unfiltered);
    sequence.sample_mask = arrays[kSampleMask][row];
    sequence.reward = arrays[kRewards].empty() ? 0 : arrays[kRewards][row];
    sequence.per_token = 1 / denominator(batch.global_valid_tokens());
    sequence.per_sequence = 1 / denominator(batch.global_valid_sequences());
    sequence.sums = sum_sequence(sequence);
  }
  return all;
}

void ClippedPg::compute(const Call&, const LossBatch& batch, LossOut& out) const {
  const std::vector<Sequence> all = sequences(batch, out);
  Totals totals;
  double weights = 0, valid = 0, weights_of_valid = 0;
  for (const Sequence& sequence : all) {
    add_actor(options_, sequence, totals);
    if (options_.kl_penalty != 0) add_kl(options_, sequence, totals);
    add_mismatch(options_, sequence, totals);
    const Weight weight = truncate_weight(options_, sequence.sums.weight, sequence.sums);
    weights += weight.value;
    valid += sequence.sample_mask;
    weights_of_valid += weight.value * sequence.sample_mask;
    if (options_.truncation == Truncation::seq_mask_tis) {
      totals.metrics[kIsOobRatio] += weight.outside * sequence.sample_mask * sequence.per_sequence;
    }
  }
  totals.metrics[kNumValidSamples] = valid;

  // NeMo-RL makes these two reductions over the rows of a padded micro-batch, and over each sequence of a packed one.
  // In the padded form of the first every row's weight meets every row's mask.
  if (options_.sequence_ratios) {
    const double sum = batch.padded() ? weights * valid : weights_of_valid;
    totals.metrics[kSamplingImportanceRatio] = sum / denominator(batch.global_valid_sequences());
  }
  if (options_.positive_nll_weight != 0) {
    const size_t group = batch.padded() ? all.size() : 1;
    for (size_t row = 0; row < all.size(); row += group) {
      add_positive_nll(options_, std::span(all).subspan(row, group), totals);
    }
  }
  for (const Sequence& sequence : all) {
    for (size_t t = 0; t < sequence.size(); ++t) sequence.grad[t] = sequence.removed(t) ? 0 : sequence.grad[t];
  }
  report(totals, out);
}

void ClippedPg::report(const Totals& totals, LossOut& out) const {
  out.loss() = totals.actor + options_.kl_penalty * totals.kl + options_.positive_nll_weight * totals.positive_nll;
  for (size_t i = 0; i < kMetricCount; ++i) out.set_metric(i, totals.metrics[i]);
  out.set_metric(kLoss, out.loss());
  out.set_metric(kKlPenalty, totals.kl);
  out.set_metric(kPositiveNllLoss, totals.positive_nll);
  const double any = totals.ratio.min <= totals.ratio.max ? 1 : 0;
  out.set_metric(kProbsRatioMin, totals.ratio.min, any);
  out.set_metric(kProbsRatioMax, totals.ratio.max, any);
  out.set_metric(kProbsRatioClampedMin, totals.clamped.min, any);
  out.set_metric(kProbsRatioClampedMax, totals.clamped.max, any);
}

}  // namespace clipped_pg

HEXAD_CPP_LOSS(clipped_pg::ClippedPg, "clipped_pg", "1.0.0", "Apache-2.0")
