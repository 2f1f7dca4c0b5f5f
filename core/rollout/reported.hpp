// Metrics that environments report beside their scores.
#pragma once
#include <map>
#include <string>

namespace hexad::rollout {

// Attempts at rewards that failed, of an environment or of a part of one.
inline bool is_failures(const std::string& name) {
  return name == "num_reward_failures" || name.ends_with("/num_reward_failures");
}

// Adds those of another environment, turn or generation of the same step: failures of rewards add up, others are the newest.
inline void merge_reported(std::map<std::string, double>& all, const std::map<std::string, double>& more) {
  for (const auto& [name, value] : more) {
    if (is_failures(name)) {
      all[name] += value;
    } else {
      all[name] = value;
    }
  }
}

}  // namespace hexad::rollout
