// The books that are kept of a run, whatever its algorithm: progress, validation, checkpoints, logs, and its end.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "core/algorithm/run/run.hpp"
#include "core/algorithm/run/saver.hpp"
#include "core/data/dataset/loader.hpp"
#include "core/telemetry/performance.hpp"
#include "core/telemetry/timer.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// What the algorithm's block says of the run's course.
struct Course {
  std::string block;      // its key: "grpo"
  int64_t last_step = 0;  // by max_num_steps and max_num_epochs
  int64_t steps_per_epoch = 1;
  int64_t examples_per_step = 0;  // of the data, that one step consumes
  int64_t val_period = 0;         // 0 or -1: never in between
  int64_t val_start_at = -1;
  bool val_at_start = false, val_at_end = false;
  std::optional<std::string> stop_metric;  // of validation: the run ends when it reaches the threshold
  double stop_threshold = 0;
  int64_t max_nonfinite_steps = 5;
};

// Validates, and returns metrics under the prefix "validation", or another ("validation-default") where it says so.
struct Validation {
  std::string prefix = "validation";
  Metrics metrics;
};
using Validate = std::function<Validation()>;

struct TrainingStep {
  int64_t number = 0;  // from 1
  cluster::TrainResult trained;
  Metrics metrics;
};

class RunBook {
 public:
  // Validates before the first step if the course says so.
  RunBook(Run& run, telemetry::Timer& timer, const Course& course, Validate validate);

  int64_t last_step() const { return course_.last_step; }
  bool is_over() const { return run_.progress.total_steps >= course_.last_step; }

  // The number of the step that begins.
  int64_t begin();
  // After training: counts the step, validates and saves when it is time. `position`: of the data, for a checkpoint.
  // Not `finished`: the run ends with this step.
  Ending close(TrainingStep& step, const data::LoaderState& position);
  // The data ended before the last step: what `close` does at the last step and has not done at the step before.
  void finish(const data::LoaderState& position);
  // When the step's time is over: logs. Throws Error(data) after too many steps that were not finite.
  void report(const TrainingStep& step, telemetry::StepSize size);

 private:
  Metrics validate();
  void tell(const Validation& validation) const;
  void check_names(const Metrics& validation) const;
  // Returns while the checkpoint is under way, but for the last.
  void save(const data::LoaderState& position, bool is_last);
  void try_to_save(const std::function<void()>& attempt, bool is_hopeless, bool is_last);
  void told(std::optional<int64_t> committed) const;
  bool is_traced(int64_t step) const;
  void end_trace(int64_t step);

  Run& run_;
  telemetry::Timer& timer_;
  Course course_;
  Validate validate_;
  Saver saver_;
  int64_t first_step_;
  int64_t nonfinite_steps_ = 0;
  int64_t validated_ = -1, saved_ = -1;  // the newest step that was, or is being saved
  bool save_missed_ = false;             // the disk was full: every step tries again
  const telemetry::Stopwatch since_start_;
};

// Whether a period's turn has come at this step; a period below 1 is never.
bool due(int64_t step, int64_t period);

}  // namespace hexad::algorithm
