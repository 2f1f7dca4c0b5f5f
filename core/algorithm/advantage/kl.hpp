// Per-token estimators of KL(policy || reference) from the log-probs of the sampled tokens (Schulman 2020).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hexad::algorithm {

enum class KlType : uint8_t {
  k1,                                         // -d
  k2,                                         // d^2 / 2
  k3,                                         // exp(d) - 1 - d
};                                            // with d = reference - policy
KlType kl_type_named(std::string_view name);  // throws Error(config)

struct KlOptions {
  KlType type = KlType::k3;
  std::optional<double> input_clamp = 20.0;   // on |d|
  std::optional<double> output_clamp = 10.0;  // on the weighted estimate
};

// weight * estimate, clamped; `weights` may be empty (1).
std::vector<float> kl(std::span<const float> logprobs, std::span<const float> reference, const KlOptions& options,
                      std::span<const float> weights = {});

}  // namespace hexad::algorithm
