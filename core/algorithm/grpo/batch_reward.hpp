// Rewards of the samples of a batch.
#pragma once
#include <vector>

#include "core/data/batch.hpp"

namespace hexad::algorithm {

// [B] 1 for samples that have a reward: others count in no baseline and no mean.
std::vector<float> scored(const data::Batch& batch);

// The mean of the rewards of samples that have one; 0 where none has.
double mean_reward(const data::Batch& batch);

}  // namespace hexad::algorithm
