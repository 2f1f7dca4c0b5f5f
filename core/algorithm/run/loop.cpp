#include "core/algorithm/run/loop.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "core/algorithm/run/preflight.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

namespace hexad::algorithm {
namespace {

constexpr std::chrono::milliseconds kSoon(50);  // a small checkpoint is there by then

// Of the optimizer, where no schedule moves it; torch's default where nothing says it.
double weight_decay(const Training& run) {
  const double scheduled = run.schedule.weight_decay();
  if (std::isfinite(scheduled)) return scheduled;
  const config::OptimizerConfig& optimizer = run.config.policy.optimizer;
  return optimizer.kwargs.value("weight_decay", optimizer.name.ends_with("AdamW") ? 0.01 : 0.0);
}

}  // namespace

bool due(int64_t step, int64_t period) { return period > 0 && step % period == 0; }

Loop::Loop(Training& run, LoopSettings settings)
    : run_(run),
      settings_(std::move(settings)),
      timer_([this](const std::string& phase) { run_.console.phase(phase); }),
      saver_(run),
      first_step_(run.progress.total_steps) {}

int64_t Loop::begin() {
  const int64_t step = run_.progress.total_steps + 1;
  timer_.reset();
  run_.console.begin(step, settings_.last_step);
  run_.policy.begin_step(step);
  if (is_traced(step)) run_.policy.begin_trace();
  return step;
}

void Loop::tell(Step& step, data::DrawnTooLong& drawn) const {
  if (const int64_t count = drawn.take_count(); count > 0) step.metrics["num_too_long"] = static_cast<double>(count);
  if (const std::string note = drawn.take_note(); !note.empty()) run_.console.line("note: " + note);
}

void Loop::count(Step& step, const data::LoaderState& position) {
  checkpoint::TrainingInfo& progress = run_.progress;
  cluster::TrainResult& trained = step.trained;
  Metrics& metrics = step.metrics;
  end_trace(step.number);
  metrics["lr"] = run_.schedule.rate();
  metrics["wd"] = weight_decay(run_);
  run_.schedule.step();
  nonfinite_steps_ = trained.skipped_steps > 0 ? nonfinite_steps_ + 1 : 0;

  position_ = position;
  progress.total_steps = step.number;
  progress.current_step = step.number % std::max<int64_t>(1, settings_.steps_per_epoch);
  progress.current_epoch = position.epoch;
  progress.loader = nlohmann::ordered_json(position);
  progress.consumed_samples += settings_.examples_per_step;
  progress.metrics.clear();  // of this step alone: a checkpoint that was not validated has no rank
  progress.total_valid_tokens += static_cast<int64_t>(trained.valid_tokens);

  metrics["grad_norm"] = trained.grad_norm;
  metrics["skipped_steps"] = static_cast<double>(trained.skipped_steps);
  add_reported(metrics, trained.metrics);
  add_reported(metrics, step.reported);
  for (const auto& [name, value] : metrics) progress.metrics["train:" + name] = value;
  run_.interruption.has_unsaved = run_.checkpoints != nullptr;
  run_.interruption.trained();
  is_interrupted();
}

bool Loop::is_interrupted() {
  if (run_.interruption.interrupted > 0) ending_ = Ending::interrupted;
  return ending_ == Ending::interrupted;
}

void Loop::give_up(const Interrupted& why) {
  if (is_first()) throw;
  run_.console.line(why.what());
  ending_ = Ending::interrupted;
}

bool Loop::is_last() const {
  return ends_early_ || ending_ != Ending::finished || run_.progress.total_steps == settings_.last_step;
}

bool Loop::is_validation_due() const {
  const int64_t step = run_.progress.total_steps;
  if (validated_ == step || run_.interruption.interrupted > 0) return false;
  if (is_first()) return step == 0 && settings_.val_at_start && !ends_early_;
  if (is_last() && settings_.val_at_end) return true;
  return !ends_early_ && due(step, settings_.val_period) && step >= settings_.val_start_at;
}

void Loop::validated(const Validation& validation) {
  run_.log.add(validation.prefix, validation.metrics);
  for (const auto& [name, value] : validation.metrics) {
    run_.progress.metrics["val:" + name] = value;
    // NeMo-RL's name where validation sets have one each.
    if (validation.prefix != "validation") run_.progress.metrics["val:" + validation.prefix + "_" + name] = value;
  }
  validated_ = run_.progress.total_steps;
  validation_ = validation.metrics;
  run_.console.validated(validated_, validation.prefix, validation.metrics);
  const auto stop = settings_.stop_metric ? validation.metrics.find(*settings_.stop_metric) : validation.metrics.end();
  if (!is_first() && !ends_early_ && stop != validation.metrics.end() && stop->second >= settings_.stop_threshold)
    ending_ = Ending::stopped_early;
  if (is_first()) check_names();
  if (is_first() || ends_early_) run_.log.end_step(validated_);
}

// A name that validation does not have would rank no checkpoint, and never end the run.
void Loop::check_names() const {
  if (!validation_ || validation_->empty()) return;  // there is nothing to validate on
  const auto check = [](const std::string& key, const std::string& name, const std::vector<std::string>& known) {
    if (std::ranges::find(known, name) == known.end())
      fail(ErrorKind::config, "{}: {}", key, unknown_metric(name, known));
  };
  std::vector<std::string> names, ranked;
  for (const auto& [name, value] : *validation_) names.push_back(name);
  for (const auto& [name, value] : run_.progress.metrics)
    if (name.starts_with("val:")) ranked.push_back(name);
  if (settings_.stop_metric) check(settings_.block + ".stop_at_validation_metric", *settings_.stop_metric, names);
  const auto& metric = run_.config.checkpointing.metric_name;
  if (run_.checkpoints && metric && metric->starts_with("val:")) check("checkpointing.metric_name", *metric, ranked);
}

bool Loop::is_checkpoint_due() {
  const int64_t step = run_.progress.total_steps;
  const auto& saving = run_.config.checkpointing;
  const double mean_step_s = since_start_.seconds() / static_cast<double>(step - first_step_);
  if (ending_ == Ending::finished && run_.since_launch.seconds() + mean_step_s + saver_.longest_s() >
                                         saving.checkpoint_must_save_by_s.value_or(INFINITY)) {
    run_.console.line("checkpointing.checkpoint_must_save_by: the time is over; saving and stopping");
    ending_ = Ending::stopped_early;
  }
  const bool is_asked = is_save_asked();
  return run_.checkpoints && (is_asked || is_last() || save_missed_ || due(step, saving.save_period) ||
                              due(step, saving.ft_save_period.value_or(0)));
}

// By a signal, since the step before.
bool Loop::is_save_asked() {
  const int asked = run_.interruption.saves;
  if (std::exchange(saves_asked_, asked) == asked) return false;
  if (!run_.checkpoints)
    run_.console.line("a checkpoint was asked for by a signal, and checkpointing.enabled is false: nothing is saved");
  return true;
}

// Once. The rank of a checkpoint is that of its own step.
void Loop::tell_unranked() {
  const config::CheckpointingConfig& saving = run_.config.checkpointing;
  const std::optional<std::string>& metric = saving.metric_name;
  if (told_unranked_ || !metric || !saving.keep_top_k || run_.progress.metrics.contains(*metric)) return;
  told_unranked_ = true;
  const std::string mend = metric->starts_with("val:")
                               ? fmt::format("validate when you save ({0}.val_period, {0}.val_at_end)", settings_.block)
                               : "name one that steps have (metrics.jsonl)";
  run_.console.line(
      fmt::format("note: checkpointing.metric_name: step {} has no '{}'; checkpoints without it rank last, and of them "
                  "the newest are kept. To rank this one, {}, or set it to null",
                  run_.progress.total_steps, *metric, mend));
}

void Loop::save() {
  failed_save_ = nullptr;
  tell_unranked();
  for (const Stopwatch waited;; std::this_thread::sleep_for(std::chrono::seconds(1))) {
    const double left_s = (run_.interruption.interrupted > 0 ? 5 : 30) - waited.seconds();
    save_missed_ = false;
    try_to_save(
        [&] {
          print_saved(saver_.finish());
          saver_.begin(position_);
          saved_ = run_.progress.total_steps;
          const bool waits = is_last() || !run_.config.checkpointing.is_async;
          print_saved(waits ? saver_.finish() : saver_.advance(kSoon));
        },
        !is_last()   ? "after the next step"
        : left_s > 0 ? fmt::format("for {:.0f} s", left_s)
                     : "");
    if (!save_missed_ || !is_last()) return;
  }
}

void Loop::print_saved(std::optional<int64_t> committed) const {
  if (!committed) return;
  if (*committed == run_.progress.total_steps) run_.interruption.has_unsaved = false;
  run_.console.line(fmt::format("saved {}/step_{}", run_.config.checkpointing.checkpoint_dir, *committed));
}

// A disk without room is for others to mend: the run goes on meanwhile, and waits for a moment before it ends. `again`:
// when it is tried again; empty: never. What ends the run is thrown when its metrics are written.
void Loop::try_to_save(const std::function<void()>& attempt, const std::string& again) {
  try {
    attempt();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    saved_ = -1;
    failed_save_ = tells_of_full_disk(what) ? nullptr : std::current_exception();
    if (failed_save_) return;
    const std::string text = fmt::format("step {} is not saved: {}. Free space in checkpointing.checkpoint_dir ({})",
                                         saver_.newest(), what, run_.config.checkpointing.checkpoint_dir);
    save_missed_ = !again.empty();
    if (save_missed_) return run_.console.line(fmt::format("{}; it is tried again {}", text, again));
    failed_save_ = std::make_exception_ptr(Error(
        ErrorKind::data, text + ", and start the run again: it goes on from the newest checkpoint that is there"));
  }
}

void Loop::throw_failed_save() {
  if (failed_save_) std::rethrow_exception(std::exchange(failed_save_, nullptr));
}

void Loop::report(const Step& step, telemetry::StepSize size) {
  if (saver_.step() && saved_ != step.number)
    try_to_save([&] { print_saved(saver_.advance({})); }, "after the next step");

  const Metrics& seconds = timer_.seconds();
  run_.log.add("train", step.metrics);
  run_.log.add("timing/train", seconds);
  size.valid_tokens = step.trained.valid_tokens;
  size.devices = run_.placement.world();
  size.trainers = run_.placement.trainers.count, size.generators = run_.placement.generators.count;
  const Metrics rates = telemetry::performance_metrics(seconds, size);
  run_.log.add("performance", rates);
  run_.log.end_step(step.number);
  run_.console.step(step.number, step.metrics, seconds, rates);
  throw_failed_save();
  is_interrupted();
  if (validated_ == step.number) check_names();  // when what was trained is saved, where it is to be
  if (nonfinite_steps_ == 0) return;
  const int64_t most = settings_.max_nonfinite_steps;
  run_.console.line(fmt::format(
      "step {}: loss or gradient was not finite (grad_norm {}); the update was skipped ({} of at most {} in a row)",
      step.number, step.trained.grad_norm, nonfinite_steps_, most));
  if (nonfinite_steps_ < most) return;
  fail(
      ErrorKind::data,
      "{} steps in a row had a loss or gradient that was not finite; stopping. The last good weights are in the newest "
      "checkpoint. Lower policy.optimizer.kwargs.lr or policy.max_grad_norm, or raise {}.max_nonfinite_steps",
      nonfinite_steps_, settings_.block);
}

void Loop::end_early(const data::LoaderState& position) {
  ends_early_ = true;
  position_ = position;
}

void Loop::finish() {
  const int64_t step = run_.progress.total_steps;
  if (step == first_step_ || !run_.checkpoints) return;
  try_to_save([&] { print_saved(saver_.finish()); }, "at once");
  if (saved_ != step) save();
  throw_failed_save();
}

bool Loop::is_traced(int64_t step) const {
  const std::vector<double>& steps = run_.config.logger.profile_steps;
  return std::find(steps.begin(), steps.end(), static_cast<double>(step)) != steps.end();
}

// log_dir/profile-step<step>-rank<rank>.json, of a step that logger.profile_steps names.
void Loop::end_trace(int64_t step) {
  if (!is_traced(step)) return;
  const std::filesystem::path folder = std::filesystem::absolute(run_.log.directory());
  run_.policy.save_trace(folder / fmt::format("profile-step{}.json", step));
  run_.console.line(fmt::format("step {}: traced into {}/profile-step{}-rank*.json (chrome://tracing, Perfetto)", step,
                                folder.string(), step));
}

}  // namespace hexad::algorithm
