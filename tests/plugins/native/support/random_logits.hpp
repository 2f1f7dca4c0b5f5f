// A row of logits to draw from.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace native_test {

inline std::vector<float> random_logits(int64_t vocab, uint64_t seed, float spread) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(vocab);
  for (float& logit : logits) logit = normal(rng);
  return logits;
}

}  // namespace native_test
