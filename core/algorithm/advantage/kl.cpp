#include "core/algorithm/advantage/kl.hpp"

#include <algorithm>
#include <cmath>

#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

struct Term {
  double value;       // estimate at d
  double derivative;  // of the estimate by d
};

Term estimate(KlType type, double d) {
  switch (type) {
    case KlType::k1: return {-d, -1};
    case KlType::k2: return {d * d / 2, d};
    case KlType::k3: break;
  }
  return {std::exp(d) - 1 - d, std::exp(d) - 1};
}

void check_sizes(std::span<const float> logprobs, std::span<const float> reference, std::span<const float> weights) {
  if (reference.size() != logprobs.size() || (!weights.empty() && weights.size() != logprobs.size())) {
    fail(ErrorKind::data, "KL: {} log-probs, {} reference log-probs, {} weights", logprobs.size(), reference.size(),
         weights.size());
  }
}

// The log-ratio in fp32, as it is computed upstream, and whether the input clamp changed it.
struct LogRatio {
  float d;
  bool clamped;
};
LogRatio log_ratio(float logprob, float reference, const KlOptions& options) {
  const float d = reference - logprob;
  if (!options.input_clamp) return {d, false};
  const float bound = static_cast<float>(*options.input_clamp);
  return {std::clamp(d, -bound, bound), std::abs(d) > bound};
}

}  // namespace

KlType kl_type_named(std::string_view name) {
  if (name == "k1") return KlType::k1;
  if (name == "k2") return KlType::k2;
  if (name == "k3") return KlType::k3;
  fail(ErrorKind::config, "loss_fn.reference_policy_kl_type: unknown estimator '{}'; known: k1, k2, k3", name);
}

std::vector<float> kl(std::span<const float> logprobs, std::span<const float> reference, const KlOptions& options,
                      std::span<const float> weights) {
  check_sizes(logprobs, reference, weights);
  std::vector<float> result(logprobs.size());
  for (size_t i = 0; i < result.size(); ++i) {
    double value = estimate(options.type, log_ratio(logprobs[i], reference[i], options).d).value;
    if (!weights.empty()) value *= weights[i];
    if (options.output_clamp) value = std::clamp(value, -*options.output_clamp, *options.output_clamp);
    result[i] = static_cast<float>(value);
  }
  return result;
}

std::vector<float> kl_gradient(std::span<const float> logprobs, std::span<const float> reference,
                               const KlOptions& options, std::span<const float> weights,
                               std::span<const float> grad_output) {
  check_sizes(logprobs, reference, weights);
  if (grad_output.size() != logprobs.size()) {
    fail(ErrorKind::data, "KL: {} log-probs, {} output gradients", logprobs.size(), grad_output.size());
  }
  std::vector<float> result(logprobs.size(), 0.0f);
  for (size_t i = 0; i < result.size(); ++i) {
    const LogRatio ratio = log_ratio(logprobs[i], reference[i], options);
    if (ratio.clamped) continue;
    const Term term = estimate(options.type, ratio.d);
    const double weight = weights.empty() ? 1.0 : weights[i];
    if (options.output_clamp && std::abs(weight * term.value) > *options.output_clamp) continue;
    const double weight_part = weights.empty() ? 0.0 : weight * term.value;
    result[i] = static_cast<float>(grad_output[i] * (weight_part - weight * term.derivative));
  }
  return result;
}

}  // namespace hexad::algorithm
