// Estimators that whiten over all tokens of the batch (REINFORCE++, raw reward), and on-policy distillation.
#include <algorithm>
#include <cmath>

#include "core/algorithm/advantage/baseline.hpp"
#include "core/algorithm/advantage/internal.hpp"

namespace hexad::algorithm::detail {
namespace {

constexpr double kMinVariance = 1e-8;

// (x - mean) / sqrt(max(variance, 1e-8)) with the biased variance over mask tokens; masked tokens are moved too.
void whiten_biased(std::vector<float>& advantages, std::span<const float> mask) {
  const MaskedMoments moments = masked_moments(advantages, mask);
  if (moments.count == 0) return;
  const double scale = 1 / std::sqrt(std::max(moments.squares / moments.count, kMinVariance));
  for (float& advantage : advantages) advantage = static_cast<float>((advantage - moments.mean) * scale);
}

std::vector<double> minus_group_mean(const AdvantageInput& input) {
  const BaselineStd moments =
      baseline_and_std(input.group_of, input.rewards, valid_of(input, input.rewards.size()), false);
  std::vector<double> result(input.rewards.begin(), input.rewards.end());
  for (size_t i = 0; i < result.size(); ++i) result[i] -= moments.baseline[i];
  return result;
}

}  // namespace

Advantages reinforce_plus_plus(const AdvantageOptions& options, const AdvantageInput& input) {
  const std::vector<double> per_sample = options.minus_baseline
                                             ? minus_group_mean(input)
                                             : std::vector<double>(input.rewards.begin(), input.rewards.end());
  Advantages result{spread(per_sample, input.cu_seqlens), {}, {}};
  if (options.use_kl_in_reward) {
    KlOptions kl_options;
    kl_options.type = options.kl_type;
    const std::vector<float> penalty = kl(input.logprobs, input.reference, kl_options);
    for (size_t t = 0; t < penalty.size(); ++t) {
      result.advantages[t] -= static_cast<float>(options.kl_coefficient * penalty[t]);
    }
  }
  whiten_biased(result.advantages, input.mask);
  return result;
}

Advantages raw_reward(const AdvantageOptions& options, const AdvantageInput& input) {
  const std::vector<double> rewards(input.rewards.begin(), input.rewards.end());
  Advantages result{spread(rewards, input.cu_seqlens), {}, {}};
  if (options.normalize_advantages) whiten_biased(result.advantages, input.mask);
  return result;
}

Advantages opd(const AdvantageInput& input) {
  Advantages result{std::vector<float>(input.mask.size()), {}, {}};
  for (size_t t = 0; t < input.mask.size(); ++t) {
    result.advantages[t] = (input.teacher[t] - input.logprobs[t]) * input.mask[t];
  }
  const MaskedMoments moments = masked_moments(result.advantages, input.mask);
  const double std = moments.count > 1 ? std::sqrt(moments.squares / (moments.count - 1)) : 0.0;
  result.metrics = {{"on_policy_distillation/teacher_student_logprob_gap_mean", moments.mean},
                    {"on_policy_distillation/adv_mean", moments.mean},
                    {"on_policy_distillation/adv_std", std}};
  return result;
}

}  // namespace hexad::algorithm::detail
