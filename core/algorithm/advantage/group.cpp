// Estimators relative to the other responses of a prompt: GRPO, and GDPO over several rewards.
#include <cmath>

#include "core/algorithm/advantage/baseline.hpp"
#include "core/algorithm/advantage/internal.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::algorithm::detail {
namespace {

constexpr double kEpsilon = 1e-6;

// reward - baseline, over (std + epsilon) where there is a spread: a group without one is not sharpened.
std::vector<double> relative_to_group(const AdvantageOptions& options, const AdvantageInput& input,
                                      std::span<const float> rewards) {
  const std::vector<float> valid = valid_of(input, rewards.size());
  const BaselineStd moments = baseline_and_std(input.group_of, rewards, valid, options.use_leave_one_out_baseline);
  std::vector<double> advantages(rewards.size());
  for (size_t i = 0; i < rewards.size(); ++i) {
    advantages[i] = static_cast<double>(rewards[i]) - moments.baseline[i];
    if (options.normalize_rewards && moments.std[i] > 0) advantages[i] /= moments.std[i] + kEpsilon;
  }
  return advantages;
}

// Zero mean over the samples that count, and unit (unbiased) standard deviation if there is any.
void whiten(std::vector<double>& values, std::span<const float> valid) {
  double count = 0, sum = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (valid[i] != 0) ++count, sum += values[i];
  const double mean = count > 0 ? sum / count : 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (valid[i] != 0) squares += (values[i] - mean) * (values[i] - mean);
  const double std = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  const double scale = std > 0 ? 1 / std : 1;
  for (double& value : values) value = (value - mean) * scale;
}

std::string names_of(const AdvantageInput& input) {
  std::vector<std::string> names;
  for (const auto& entry : input.components) names.push_back(entry.first);
  return joined(names);
}

}  // namespace

Advantages grpo(const AdvantageOptions& options, const AdvantageInput& input) {
  return {spread(relative_to_group(options, input, input.rewards), input.cu_seqlens), {}, {}};
}

Advantages gdpo(const AdvantageOptions& options, const AdvantageInput& input) {
  if (input.components.size() < 2) {
    fail(ErrorKind::data,
         "adv_estimator gdpo wants at least two reward components, this batch has {} ({}); use an environment that "
         "returns several, or adv_estimator.name: grpo",
         input.components.size(), names_of(input));
  }
  if (!options.reward_weights.empty() && options.reward_weights.size() != input.components.size()) {
    fail(ErrorKind::config,
         "adv_estimator.reward_weights has {} entries for {} reward components ({}); give one each, in this order",
         options.reward_weights.size(), input.components.size(), names_of(input));
  }
  std::vector<double> total(input.cu_seqlens.size() - 1, 0.0);
  size_t component = 0;
  for (const auto& [name, rewards] : input.components) {
    const double weight = options.reward_weights.empty() ? 1.0 : options.reward_weights[component++];
    const std::vector<double> part = relative_to_group(options, input, rewards);
    for (size_t i = 0; i < total.size(); ++i) total[i] += weight * part[i];
  }
  whiten(total, valid_of(input, total.size()));
  return {spread(total, input.cu_seqlens), {}, {}};
}

}  // namespace hexad::algorithm::detail
