// What a training step shares between the loops: learning from a rollout, and the books that are kept of it.
#pragma once
#include "core/algorithm/grpo_step.hpp"
#include "core/algorithm/run/book.hpp"

namespace hexad::algorithm {

struct Step : TrainingStep {
  rollout::Rollout rollout;
};

// Adds log-probs and advantages to shaped rewards, and trains. The generators' weights are stale then.
void learn(Grpo& run, telemetry::Timer& timer, Step& step);

// The books of a GRPO run, step by step.
class StepBook {
 public:
  // Validates before the first step if the configuration says so.
  StepBook(Grpo& run, telemetry::Timer& timer, UpdateGenerators update_generators);

  int64_t last_step() const { return book_.last_step(); }
  bool is_over() const { return book_.is_over(); }

  Step begin();
  // After training: counts the step, validates and saves when it is time. `position`: of the prompts, for a checkpoint.
  // Not `finished`: the run ends with this step.
  Ending close(Step& step, const data::LoaderState& position);
  // The data ended before the last step: what `close` does at the last step and has not done at the step before.
  void finish(const data::LoaderState& position);
  // When the step's time is over: logs. Throws Error(data) after too many steps that were not finite.
  void report(const Step& step);

 private:
  Grpo& run_;
  RunBook book_;
};

}  // namespace hexad::algorithm
