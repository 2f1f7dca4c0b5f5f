#include "core/algorithm/advantage/baseline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

// Sums over the valid samples of a group, and their extremes: a set of equal rewards has std exactly 0, which rounding
// in the difference of moments would hide.
struct Moments {
  double count = 0, sum = 0, squares = 0;
  void add(double value, double sign) {
    count += sign;
    sum += sign * value;
    squares += sign * value * value;
  }
  double mean() const { return sum / count; }
  double std() const {
    const double variance = (squares / count - mean() * mean()) * (count / (count - 1));
    // fp32's nan_to_num: an excluded sample of a group with two valid ones has n = 1, and gets the largest float.
    if (std::isinf(variance) && variance > 0) return std::numeric_limits<float>::max();
    return variance > 0 ? std::sqrt(variance) : 0.0;
  }
};

// Do the valid rewards of `rows`, without `left_out`, have one value?
bool all_equal(std::span<const float> rewards, std::span<const float> valid, std::span<const int64_t> rows,
               int64_t left_out) {
  const float* first = nullptr;
  for (int64_t row : rows) {
    if (row == left_out || valid[row] == 0) continue;
    if (first && *first != rewards[row]) return false;
    first = &rewards[row];
  }
  return true;
}

void check_sizes(size_t samples, std::span<const float> rewards, std::span<const float> valid,
                 std::span<const float> std_rewards) {
  if (rewards.size() != samples || valid.size() != samples || (!std_rewards.empty() && std_rewards.size() != samples)) {
    fail(ErrorKind::data, "baseline: {} group indices, {} rewards, {} valid flags, {} rewards for the std", samples,
         rewards.size(), valid.size(), std_rewards.size());
  }
}

}  // namespace

BaselineStd baseline_and_std(std::span<const int64_t> group_of, std::span<const float> rewards,
                             std::span<const float> valid, bool leave_one_out, std::span<const float> std_rewards) {
  check_sizes(group_of.size(), rewards, valid, std_rewards);
  if (std_rewards.empty()) std_rewards = rewards;
  std::map<int64_t, std::vector<int64_t>> groups;
  for (size_t i = 0; i < group_of.size(); ++i) groups[group_of[i]].push_back(static_cast<int64_t>(i));

  BaselineStd result{{rewards.begin(), rewards.end()}, std::vector<float>(rewards.size(), 0.0f)};
  for (const auto& [group, rows] : groups) {
    Moments mean_moments, std_moments;
    for (int64_t row : rows) {
      if (valid[row] == 0) continue;
      mean_moments.add(rewards[row], 1);
      std_moments.add(std_rewards[row], 1);
    }
    if (mean_moments.count <= 1) continue;
    for (int64_t row : rows) {
      Moments mean_here = mean_moments, std_here = std_moments;
      if (leave_one_out) {
        if (valid[row] != 0) {
          mean_here.add(rewards[row], -1);
          std_here.add(std_rewards[row], -1);
        }
        // An excluded sample leaves nothing out, but upstream divides its sums by n - 1 too.
        mean_here.count = std_here.count = mean_moments.count - 1;
      }
      result.baseline[row] = static_cast<float>(mean_here.mean());
      const bool complete = !leave_one_out || valid[row] != 0;
      const bool equal = complete && all_equal(std_rewards, valid, rows, leave_one_out ? row : -1);
      result.std[row] = equal ? 0.0f : static_cast<float>(std_here.std());
    }
  }
  return result;
}

std::vector<int64_t> group_by_prompt(std::span<const std::span<const int64_t>> prompts) {
  std::map<std::vector<int64_t>, int64_t> known;
  std::vector<int64_t> group_of;
  for (const std::span<const int64_t> prompt : prompts) {
    const int64_t next = static_cast<int64_t>(known.size());
    group_of.push_back(known.try_emplace({prompt.begin(), prompt.end()}, next).first->second);
  }
  return group_of;
}

std::vector<int64_t> group_by_prompt(const data::Batch& prompts, const std::string& column) {
  std::vector<std::span<const int64_t>> rows;
  for (int64_t row = 0; row < prompts.size(); ++row) rows.push_back(prompts.row<int64_t>(column, row));
  return group_by_prompt(rows);
}

}  // namespace hexad::algorithm
