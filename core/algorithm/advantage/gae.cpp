// Generalized advantage estimation (Schulman 2015) with VAPO's separate and length-adaptive lambdas.
#include <algorithm>
#include <cmath>

#include "core/algorithm/advantage/internal.hpp"

namespace hexad::algorithm::detail {
namespace {

// The sample's reward at its last token with mask 1, minus the KL penalty at every such token.
std::vector<double> token_rewards(const AdvantageOptions& options, const AdvantageInput& input) {
  std::vector<double> rewards(input.mask.size(), 0.0);
  if (options.use_kl_in_reward && options.kl_coefficient > 0) {
    KlOptions kl_options;
    kl_options.type = options.kl_type;
    const std::vector<float> penalty = kl(input.logprobs, input.reference, kl_options);
    for (size_t t = 0; t < rewards.size(); ++t) rewards[t] -= options.kl_coefficient * penalty[t];
  }
  for (size_t i = 0; i + 1 < input.cu_seqlens.size(); ++i) {
    for (int64_t t = input.cu_seqlens[i + 1] - 1; t >= input.cu_seqlens[i]; --t) {
      if (input.mask[t] == 0) continue;
      rewards[t] += input.rewards[i];
      break;
    }
  }
  for (size_t t = 0; t < rewards.size(); ++t) rewards[t] *= input.mask[t];
  return rewards;
}

// Backwards over each sample: delta = reward + gamma * V(next) - V, A = delta + gamma * lambda * A(next). At masked
// tokens the next value and advantage are carried on, so that turns of others are skipped.
std::vector<double> scan(const AdvantageOptions& options, const AdvantageInput& input, std::span<const double> rewards,
                         std::span<const double> lambdas) {
  std::vector<double> advantages(rewards.size());
  for (size_t i = 0; i < lambdas.size(); ++i) {
    double next_value = 0, advantage = 0;
    for (int64_t t = input.cu_seqlens[i + 1] - 1; t >= input.cu_seqlens[i]; --t) {
      const double value = input.values[t], mask = input.mask[t];
      const double delta = rewards[t] + options.gae_gamma * next_value - value;
      const double updated = delta + options.gae_gamma * lambdas[i] * advantage;
      next_value = value * mask + (1 - mask) * next_value;
      advantage = updated * mask + (1 - mask) * advantage;
      advantages[t] = advantage;
    }
  }
  return advantages;
}

std::vector<double> policy_lambdas(const AdvantageOptions& options, const AdvantageInput& input) {
  const size_t samples = input.cu_seqlens.size() - 1;
  std::vector<double> lambdas(samples, options.gae_lambda_policy.value_or(options.gae_lambda));
  if (options.length_adaptive_alpha <= 0) return lambdas;
  for (size_t i = 0; i < samples; ++i) {
    double length = 0;
    for (int64_t t = input.cu_seqlens[i]; t < input.cu_seqlens[i + 1]; ++t) length += input.mask[t];
    lambdas[i] = std::clamp(1 - 1 / std::max(options.length_adaptive_alpha * length, 1.0), 0.0, 1.0);
  }
  return lambdas;
}

// (x - mean) / sqrt(variance + 1e-8) with the unbiased variance over mask tokens; masked tokens are moved too.
void whiten_unbiased(std::vector<float>& advantages, std::span<const float> mask) {
  const MaskedMoments moments = masked_moments(advantages, mask);
  const double variance = moments.count > 1 ? moments.squares / (moments.count - 1) : 0.0;
  const double scale = 1 / std::sqrt(variance + 1e-8);
  for (float& advantage : advantages) advantage = static_cast<float>((advantage - moments.mean) * scale);
}

}  // namespace

Advantages gae(const AdvantageOptions& options, const AdvantageInput& input) {
  const std::vector<double> rewards = token_rewards(options, input);
  const std::vector<double> value_lambdas(input.cu_seqlens.size() - 1,
                                          options.gae_lambda_value.value_or(options.gae_lambda));
  const std::vector<double> for_returns = scan(options, input, rewards, value_lambdas);
  const std::vector<double> for_policy = scan(options, input, rewards, policy_lambdas(options, input));
  Advantages result{{for_policy.begin(), for_policy.end()}, std::vector<float>(for_returns.size()), {}};
  for (size_t t = 0; t < for_returns.size(); ++t)
    result.returns[t] = static_cast<float>(for_returns[t] + input.values[t]);
  if (options.normalize_advantages) whiten_unbiased(result.advantages, input.mask);
  for (size_t t = 0; t < result.advantages.size(); ++t) {
    if (input.mask[t] == 0) result.advantages[t] = 0;
  }
  return result;
}

}  // namespace hexad::algorithm::detail
