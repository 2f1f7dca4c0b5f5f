#include "core/algorithm/advantage/advantage.hpp"

#include <algorithm>

#include "core/algorithm/advantage/internal.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::algorithm {
namespace {

const std::vector<std::string> kNames = {"grpo", "gdpo", "reinforce_plus_plus", "raw_reward", "gae", "opd"};

void want(std::string_view name, size_t got, size_t wanted) {
  if (got != wanted) fail(ErrorKind::data, "advantages: {} has {} elements, want {}", name, got, wanted);
}

void check(const AdvantageOptions& options, const AdvantageInput& input) {
  if (input.cu_seqlens.empty()) fail(ErrorKind::data, "advantages: cu_seqlens is empty");
  const size_t samples = input.cu_seqlens.size() - 1;
  const size_t tokens = static_cast<size_t>(input.cu_seqlens.back());
  want("mask", input.mask.size(), tokens);
  if (!input.valid.empty()) want("valid", input.valid.size(), samples);
  const Estimator estimator = options.estimator;
  if (estimator != Estimator::gdpo && estimator != Estimator::opd) want("rewards", input.rewards.size(), samples);
  const bool grouped = estimator == Estimator::grpo || estimator == Estimator::gdpo ||
                       (estimator == Estimator::reinforce_plus_plus && options.minus_baseline);
  if (grouped) want("group_of", input.group_of.size(), samples);
  if (estimator == Estimator::gae) want("values", input.values.size(), tokens);
  const bool token_kl = estimator == Estimator::gae || estimator == Estimator::reinforce_plus_plus;
  if (token_kl && options.use_kl_in_reward) {
    want("logprobs", input.logprobs.size(), tokens);
    want("reference", input.reference.size(), tokens);
  }
  if (estimator == Estimator::opd) {
    want("logprobs", input.logprobs.size(), tokens);
    want("teacher", input.teacher.size(), tokens);
  }
  for (const auto& [name, values] : input.components) want(name, values.size(), samples);
}

}  // namespace

Estimator estimator_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Estimator>(found - kNames.begin());
  fail(ErrorKind::config, "adv_estimator.name: unknown estimator '{}'{}; known: {}", name, did_you_mean(name, kNames),
       joined(kNames));
}

Advantages estimate_advantages(const AdvantageOptions& options, const AdvantageInput& input) {
  check(options, input);
  switch (options.estimator) {
    case Estimator::grpo: return detail::grpo(options, input);
    case Estimator::gdpo: return detail::gdpo(options, input);
    case Estimator::reinforce_plus_plus: return detail::reinforce_plus_plus(options, input);
    case Estimator::raw_reward: return detail::raw_reward(options, input);
    case Estimator::gae: return detail::gae(options, input);
    case Estimator::opd: break;
  }
  return detail::opd(input);
}

void clip_advantages(std::span<float> advantages, std::optional<double> low, std::optional<double> high) {
  for (float& advantage : advantages) {
    if (low) advantage = std::max(advantage, static_cast<float>(*low));
    if (high) advantage = std::min(advantage, static_cast<float>(*high));
  }
}

namespace detail {

std::vector<float> valid_of(const AdvantageInput& input, size_t samples) {
  if (input.valid.empty()) return std::vector<float>(samples, 1.0f);
  return {input.valid.begin(), input.valid.end()};
}

std::vector<float> spread(std::span<const double> per_sample, std::span<const int64_t> cu_seqlens) {
  std::vector<float> tokens(cu_seqlens.back());
  for (size_t i = 0; i < per_sample.size(); ++i) {
    std::fill(tokens.begin() + cu_seqlens[i], tokens.begin() + cu_seqlens[i + 1], static_cast<float>(per_sample[i]));
  }
  return tokens;
}

MaskedMoments masked_moments(std::span<const float> values, std::span<const float> mask) {
  MaskedMoments moments;
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    moments.count += mask[i];
    sum += static_cast<double>(values[i]) * mask[i];
  }
  if (moments.count == 0) return moments;
  moments.mean = sum / moments.count;
  for (size_t i = 0; i < values.size(); ++i) {
    moments.squares += (values[i] - moments.mean) * (values[i] - moments.mean) * mask[i];
  }
  return moments;
}

}  // namespace detail
}  // namespace hexad::algorithm
