// The per-prompt baseline and standard deviation of rewards (GRPO, RLOO).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/batch.hpp"

namespace hexad::algorithm {

// Per sample.
struct BaselineStd {
  std::vector<float> baseline;
  std::vector<float> std;
};

// Samples with the same index in `group_of` form a group; `valid[i]` is 1 or 0, and a sample that is not valid does not
// count in its group's moments. With n the group's valid samples, less one under leave_one_out:
//   baseline = sum of the (other) valid rewards / n,
//   std = sqrt((sum of the (other) valid squares / n - baseline^2) * n / (n - 1)), 0 where that is not a number.
// So under leave_one_out every sample has a std of its own. A group with fewer than two valid samples has its own
// rewards as baseline and std 0. `std_rewards`, when not empty, replaces the rewards in the std (dynamic sampling
// decides on unshaped rewards). Source: NeMo-RL, algorithms/utils.py:calculate_baseline_and_std_per_prompt.
BaselineStd baseline_and_std(std::span<const int64_t> group_of, std::span<const float> rewards,
                             std::span<const float> valid, bool leave_one_out, std::span<const float> std_rewards = {});

// One index per distinct prompt, in order of first appearance: samples with equal tokens share a group, even if they
// came from different rows of the data.
std::vector<int64_t> group_by_prompt(std::span<const std::span<const int64_t>> prompts);
// The same for a token column (i64) of a batch.
std::vector<int64_t> group_by_prompt(const data::Batch& prompts, const std::string& column);

}  // namespace hexad::algorithm
