// What a training loop has beside the algorithm: the number of the step, when to validate and to save, logs, and the
// end.
#pragma once
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "core/algorithm/run/saver.hpp"
#include "core/algorithm/run/training.hpp"
#include "core/data/dataset/contents.hpp"
#include "core/data/dataset/loader.hpp"
#include "core/telemetry/performance.hpp"
#include "lib/base/said/reported.hpp"
#include "lib/base/timer.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// What the algorithm's block says of the loop.
struct LoopSettings {
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

// Metrics under the prefix "validation", or another ("validation-default").
struct Validation {
  std::string prefix = "validation";
  Metrics metrics = {};
};

struct Step {
  explicit Step(int64_t number) : number(number) {}

  int64_t number;  // from 1
  cluster::TrainResult trained;
  Metrics metrics, reported;  // the engine's own; by plugins, beside what they report of the training
};

// A loop calls, in this order: is_validation_due; while not is_over: begin, count, is_validation_due,
// is_checkpoint_due, report; then end_early where the data ended, is_validation_due, finish. Where validation is due it
// calls validated, and where a checkpoint is due, save.
class Loop {
 public:
  Loop(Training& run, LoopSettings settings);

  // Where the time of a step goes, under NeMo-RL's names ("generation", "policy_training", ...).
  Timer& timer() { return timer_; }
  int64_t last_step() const { return settings_.last_step; }
  // After the last step, or when the run ends before it.
  bool is_over() const { return ending_ != Ending::finished || run_.progress.total_steps >= settings_.last_step; }
  Ending ending() const { return ending_; }

  // The number of the step that begins.
  int64_t begin();
  // Takes what was drawn and is too long: into the step's metrics, and on the console where it is the first.
  void tell(Step& step, data::DrawnTooLong& drawn) const;
  // After training: counts the step, and moves the schedule. `position`: of the data, where a resumed run goes on.
  void count(Step& step, const data::LoaderState& position);
  // Before the first step, after the one that was counted, or after the data ended.
  bool is_validation_due() const;
  // Logs what validation found. The run ends with this step where it is good enough.
  void validated(const Validation& validation);
  bool is_checkpoint_due();
  // Returns while the checkpoint is under way, but for the last.
  void save();
  // When the step's time is over: logs. Throws Error(data) after too many steps that were not finite.
  void report(const Step& step, telemetry::StepSize size);

  // The data ended before the last step: what is due at the last step is due now, after the step before.
  void end_early(const data::LoaderState& position);
  // What waited was given up for an interruption: the run ends with the step that was counted last. In a handler of
  // `why`, which it throws again where none was.
  void give_up(const Interrupted& why);
  // Whether the run is to end at once; it does so then with the step that was counted last.
  bool is_interrupted();
  // Waits for the last checkpoint, of the step that was counted last.
  void finish();

 private:
  bool is_first() const { return run_.progress.total_steps == first_step_; }
  bool is_last() const;
  bool is_save_asked();
  void tell_unranked();
  void check_names() const;
  void try_to_save(const std::function<void()>& attempt, const std::string& again);
  void throw_failed_save();
  void print_saved(std::optional<int64_t> committed) const;
  bool is_traced(int64_t step) const;
  void end_trace(int64_t step);

  Training& run_;
  LoopSettings settings_;
  Timer timer_;
  Saver saver_;
  data::LoaderState position_;  // of the data, after the step that was counted
  Ending ending_ = Ending::finished;
  int64_t first_step_;
  int64_t nonfinite_steps_ = 0;
  int64_t validated_ = -1, saved_ = -1;  // the newest step that was, or is being saved
  bool ends_early_ = false;
  bool save_missed_ = false;        // the disk was full: every step tries again
  std::exception_ptr failed_save_;  // which ends the run
  bool told_unranked_ = false;
  int saves_asked_ = 0;
  std::optional<Metrics> validation_;  // of this step, until its names are checked
  const Stopwatch since_start_;
};

// Whether a period's turn has come at this step; a period below 1 is never.
bool due(int64_t step, int64_t period);

}  // namespace hexad::algorithm
