// The samples of a synchronous step.
#pragma once
#include <optional>

#include "core/algorithm/grpo/grpo.hpp"
#include "core/algorithm/reward/dynamic_sampling.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// G responses to each prompt, and what the environments make of them. `round`: counts the rollouts of the step.
rollout::Rollout roll_out(Grpo& run, const std::vector<data::SharedDatum>& prompts, int64_t step, int64_t round);

// Those of one rollout, or with grpo.use_dynamic_sampling of as many as it takes until enough samples are in groups
// whose rewards vary (DAPO, Yu et al. 2025).
class StepSamples {
 public:
  StepSamples(const Grpo& run, int64_t step);

  bool are_complete() const { return complete_.has_value(); }
  int64_t rollouts() const { return varied_.generations(); }
  void take_all(rollout::Rollout rollout) { complete_ = std::move(rollout); }
  // Takes the groups whose rewards vary; adds metrics. Throws Error(data) after grpo.dynamic_sampling_max_gen_batches +
  // 1 rollouts.
  void take_varied(const rollout::Rollout& rollout, Metrics& metrics);
  // Once they are complete.
  rollout::Rollout take() { return std::move(*complete_); }
  // The data ended before: says what is not trained on.
  void print_incomplete() const;

 private:
  const Grpo& run_;
  int64_t step_, rows_;
  DynamicSampling varied_;
  std::optional<rollout::Rollout> complete_;
};

}  // namespace hexad::algorithm
