// The estimators behind estimate_advantages, which has checked the sizes of what each of them reads.
#pragma once
#include "core/algorithm/advantage/advantage.hpp"

namespace hexad::algorithm::detail {

Advantages grpo(const AdvantageOptions& options, const AdvantageInput& input);
Advantages gdpo(const AdvantageOptions& options, const AdvantageInput& input);
Advantages reinforce_plus_plus(const AdvantageOptions& options, const AdvantageInput& input);
Advantages raw_reward(const AdvantageOptions& options, const AdvantageInput& input);
Advantages gae(const AdvantageOptions& options, const AdvantageInput& input);
Advantages opd(const AdvantageInput& input);

// input.valid, or 1 for every sample where it is empty.
std::vector<float> valid_of(const AdvantageInput& input, size_t samples);

// One value per sample, repeated over the sample's tokens.
std::vector<float> spread(std::span<const double> per_sample, std::span<const int64_t> cu_seqlens);

// Over the elements with mask 1: their count, mean, and sum of squared distances from the mean.
struct MaskedMoments {
  double count = 0, mean = 0, squares = 0;
};
MaskedMoments masked_moments(std::span<const float> values, std::span<const float> mask);

}  // namespace hexad::algorithm::detail
