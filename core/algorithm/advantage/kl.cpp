#include "core/algorithm/advantage/kl.hpp"

#include <algorithm>
#include <cmath>

#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

double estimate(KlType type, double d) {
  switch (type) {
    case KlType::k1: return -d;
    case KlType::k2: return d * d / 2;
    case KlType::k3: break;
  }
  return std::exp(d) - 1 - d;
}

void check_sizes(std::span<const float> logprobs, std::span<const float> reference, std::span<const float> weights) {
  if (reference.size() != logprobs.size() || (!weights.empty() && weights.size() != logprobs.size())) {
    fail(ErrorKind::data, "KL: {} log-probs, {} reference log-probs, {} weights", logprobs.size(), reference.size(),
         weights.size());
  }
}

// The log-ratio in fp32, as it is computed upstream.
float log_ratio(float logprob, float reference, const KlOptions& options) {
  const float d = reference - logprob;
  if (!options.input_clamp) return d;
  const float bound = static_cast<float>(*options.input_clamp);
  return std::clamp(d, -bound, bound);
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
    double value = estimate(options.type, log_ratio(logprobs[i], reference[i], options));
    if (!weights.empty()) value *= weights[i];
    if (options.output_clamp) value = std::clamp(value, -*options.output_clamp, *options.output_clamp);
    result[i] = static_cast<float>(value);
  }
  return result;
}

}  // namespace hexad::algorithm
