#include "core/algorithm/grpo/batch_reward.hpp"

namespace hexad::algorithm {

std::vector<float> scored(const data::Batch& batch) {
  std::vector<float> valid;
  for (const uint8_t invalid : batch.at("invalid").span<uint8_t>()) valid.push_back(invalid ? 0.0f : 1.0f);
  return valid;
}

double mean(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double mean_reward(const data::Batch& batch) {
  const std::vector<float> valid = scored(batch);
  const auto rewards = batch.at("rewards").span<float>();
  std::vector<float> of_valid;
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i] != 0) of_valid.push_back(rewards[i]);
  }
  return mean(of_valid);
}

}  // namespace hexad::algorithm
