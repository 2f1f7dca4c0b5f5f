// Rewards of the samples of a batch.
#pragma once
#include <span>
#include <vector>

#include "core/data/batch.hpp"

namespace hexad::algorithm {

// [B] 1 for samples that have a reward: others count in no baseline and no mean.
std::vector<float> scored(const data::Batch& batch);

// The mean, 0 of nothing.
double mean(std::span<const float> values);

// The mean of the rewards of samples that have one.
double mean_reward(const data::Batch& batch);

}  // namespace hexad::algorithm
