// What a training step shares between the loops: learning from a rollout, and the books that are kept of it.
#pragma once
#include "core/algorithm/grpo_step.hpp"
#include "core/telemetry/timer.hpp"

namespace hexad::algorithm {

struct Step {
  int64_t number = 0;  // from 1
  rollout::Rollout rollout;
  cluster::TrainResult trained;
  Metrics metrics;
};

// Adds log-probs and advantages to shaped rewards, and trains. The generators' weights are stale then.
void learn(Grpo& run, telemetry::Timer& timer, Step& step);

// Progress, validation, checkpoints and logs of a run, step by step.
class StepBook {
 public:
  // Validates before the first step if the configuration says so.
  StepBook(Grpo& run, telemetry::Timer& timer, UpdateGenerators update_generators);

  int64_t last_step() const { return last_step_; }
  bool is_over() const { return run_.progress.total_steps >= last_step_; }

  Step begin();
  // After training: counts the step, validates and saves when it is time. `position`: of the prompts, for a checkpoint.
  // Not `finished`: the run ends with this step.
  Ending close(Step& step, const data::LoaderState& position);
  // The data ended before the last step: what `close` does at the last step and has not done at the step before.
  void finish(const data::LoaderState& position);
  // When the step's time is over: logs. Throws Error(data) after too many steps that were not finite.
  void report(const Step& step);

 private:
  Metrics validate_now();
  void save_with_patience(const data::LoaderState& position, bool is_last);

  Grpo& run_;
  telemetry::Timer& timer_;
  UpdateGenerators update_generators_;
  int64_t last_step_, first_step_;
  int64_t nonfinite_steps_ = 0;
  int64_t validated_ = -1, saved_ = -1;  // the newest step that was
  bool save_missed_ = false;             // the disk was full: every step tries again
  const telemetry::Stopwatch since_start_;
};

}  // namespace hexad::algorithm
