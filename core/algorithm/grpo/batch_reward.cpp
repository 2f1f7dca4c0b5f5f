#include "core/algorithm/grpo/batch_reward.hpp"

namespace hexad::algorithm {

std::vector<float> scored(const data::Batch& batch) {
  std::vector<float> valid;
  for (const uint8_t invalid : batch.at("invalid").span<uint8_t>()) valid.push_back(invalid ? 0.0f : 1.0f);
  return valid;
}

double mean_reward(const data::Batch& batch) {
  const std::vector<float> valid = scored(batch);
  const auto rewards = batch.at("rewards").span<float>();
  double sum = 0, count = 0;
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i] != 0) sum += rewards[i], ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace hexad::algorithm
