// Steps that teach nothing because no sample has an advantage: rewards of a group that are all equal, or nothing that
// trains.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/rollout/rollout.hpp"

namespace hexad::algorithm {

// One sample for a person, on one line: its prompt and response (of long ones begin and end), the expected answer, what
// was read as the sample's answer where the environment tells it, and its reward.
std::string judged_sample(const rollout::Rollout& rollout, int64_t row);

// Counts such steps in a row, for the samples of each environment.
class FlatRewards {
 public:
  static constexpr int64_t kSteps = 3;  // whole batches of an environment's samples in a row, before it is said

  // After a step with this rollout: what to tell the user, a line for each environment that has come to kSteps now.
  std::vector<std::string> look(const rollout::Rollout& rollout, int64_t step);

 private:
  struct Streak {
    int64_t begin = 0, samples = 0;
  };
  std::map<std::string, Streak> streaks_;  // by environment
};

}  // namespace hexad::algorithm
