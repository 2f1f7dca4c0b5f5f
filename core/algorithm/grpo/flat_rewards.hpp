// Steps that teach nothing because no sample has an advantage: rewards of a group that are all equal, or nothing that
// trains.
#pragma once
#include <optional>
#include <string>

#include "core/rollout/rollout.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::algorithm {

// One sample for a person, on one line: its prompt and response (of long ones begin and end), the expected answer, what
// was read as the sample's answer where the environment tells it, and its reward.
std::string judged_sample(const rollout::Rollout& rollout, int64_t row);

// Counts such steps in a row.
class FlatRewards {
 public:
  static constexpr int64_t kSteps = 3;  // in a row, before it is said

  // After a step with these metrics (advantages/max, advantages/min) and this rollout: what to tell the user, once they
  // are kSteps in a row, and nothing otherwise.
  std::optional<std::string> look(const rollout::Rollout& rollout, const telemetry::Metrics& metrics, int64_t step);

 private:
  int64_t steps_ = 0;
};

}  // namespace hexad::algorithm
