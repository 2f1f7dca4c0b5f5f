// Rollouts as training sees them, but for the log-probs of the policy that made them: random tokens and rewards. The
// first quarter of a sample counts as its prompt.
#pragma once
#include <random>
#include <span>
#include <vector>

#include "core/data/batch.hpp"

namespace hexad::benchmarks {

inline data::Batch random_rollouts(std::span<const int64_t> lengths, int64_t vocabulary, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> reward;
  data::Batch batch = data::Batch::of_lengths(lengths);
  std::vector<int64_t> ids;
  std::vector<float> mask, advantages;
  for (const int64_t length : lengths) {
    const float advantage = reward(random);
    for (int64_t t = 0; t < length; ++t) {
      ids.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(vocabulary)));
      mask.push_back(t < std::max<int64_t>(1, length / 4) ? 0.0f : 1.0f);
      advantages.push_back(advantage);
    }
  }
  batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  batch.set("token_mask", data::Tensor::of(mask), data::Axis::token);
  batch.set("advantages", data::Tensor::of(advantages), data::Axis::token);
  batch.set("reference_policy_logprobs", data::Tensor(data::DType::f32, {batch.tokens()}), data::Axis::token);
  batch.set("sample_mask", data::Tensor::of(std::vector<float>(lengths.size(), 1.0f)), data::Axis::sample);
  return batch;
}

}  // namespace hexad::benchmarks
