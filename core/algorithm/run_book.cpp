#include "core/algorithm/run_book.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/base/error.hpp"

namespace hexad::algorithm {
namespace {

// With them a checkpoint is a model that anyone can use: hexad convert.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json"}) {
    if (std::filesystem::exists(from / name))
      std::filesystem::copy_file(from / name, to / name, std::filesystem::copy_options::overwrite_existing);
  }
}

}  // namespace

bool due(int64_t step, int64_t period) { return period > 0 && step % period == 0; }

RunBook::RunBook(Run& run, telemetry::Timer& timer, const Course& course, Validate validate)
    : run_(run), timer_(timer), course_(course), validate_(std::move(validate)), first_step_(run.progress.total_steps) {
  if (!course_.val_at_start || first_step_ > 0) return;
  const Validation validation = validate_();
  run_.log.add(validation.prefix, validation.metrics);
  run_.log.end_step(0);
}

Metrics RunBook::validate() {
  const Validation validation = validate_();
  run_.log.add(validation.prefix, validation.metrics);
  for (const auto& [name, value] : validation.metrics) {
    run_.progress.metrics["val:" + name] = value;
    // NeMo-RL's name where validation sets have one each.
    if (validation.prefix != "validation") run_.progress.metrics["val:" + validation.prefix + "_" + name] = value;
  }
  validated_ = run_.progress.total_steps;
  return validation.metrics;
}

int64_t RunBook::begin() {
  const int64_t step = run_.progress.total_steps + 1;
  timer_.reset();
  run_.policy.begin_step(step);
  if (is_traced(step)) run_.policy.begin_trace();
  return step;
}

Ending RunBook::close(TrainingStep& step, const data::LoaderState& position) {
  checkpoint::TrainingInfo& progress = run_.progress;
  cluster::TrainResult& trained = step.trained;
  Metrics& metrics = step.metrics;
  end_trace(step.number);
  metrics["lr"] = run_.schedule.rate();
  run_.schedule.step();
  nonfinite_steps_ = trained.skipped_steps > 0 ? nonfinite_steps_ + 1 : 0;

  progress.total_steps = step.number;
  progress.current_step = step.number % std::max<int64_t>(1, course_.steps_per_epoch);
  progress.current_epoch = position.epoch;
  progress.loader = nlohmann::ordered_json(position);
  progress.consumed_samples += course_.examples_per_step;
  progress.total_valid_tokens += static_cast<int64_t>(trained.metrics["global_valid_toks"]);

  metrics.insert(trained.metrics.begin(), trained.metrics.end());
  metrics["grad_norm"] = trained.grad_norm;
  metrics["skipped_steps"] = static_cast<double>(trained.skipped_steps);
  for (const auto& [name, value] : metrics) progress.metrics["train:" + name] = value;

  Ending ending = Ending::finished;
  const bool last = step.number == course_.last_step || run_.interrupted > 0;
  if (last && run_.interrupted > 0) ending = Ending::interrupted;
  if ((due(step.number, course_.val_period) && step.number >= course_.val_start_at) || (last && course_.val_at_end)) {
    const Metrics validation = validate();
    if (course_.stop_metric && validation.contains(*course_.stop_metric) &&
        validation.at(*course_.stop_metric) >= course_.stop_threshold) {
      ending = Ending::stopped_early;
    }
  }
  const auto& saving = run_.config.checkpointing;
  const double mean_step_s = since_start_.seconds() / static_cast<double>(step.number - first_step_);
  if (ending == Ending::finished &&
      since_start_.seconds() + mean_step_s > saving.checkpoint_must_save_by_s.value_or(INFINITY)) {
    run_.console.line("checkpointing.checkpoint_must_save_by: the time is over; saving and stopping");
    ending = Ending::stopped_early;
  }
  const bool is_last = last || ending != Ending::finished;
  if (run_.checkpoints && (is_last || save_missed_ || due(step.number, saving.save_period) ||
                           due(step.number, saving.ft_save_period.value_or(0)))) {
    const auto time = timer_.measure("checkpointing");
    save_with_patience(position, is_last);
  }
  return ending;
}

void RunBook::finish(const data::LoaderState& position) {
  const int64_t step = run_.progress.total_steps;
  if (step == first_step_) return;
  if (course_.val_at_end && validated_ != step) {
    validate();
    run_.log.end_step(step);
  }
  if (run_.checkpoints && saved_ != step) save_with_patience(position, /*is_last=*/true);
}

void save_checkpoint(Run& run, const data::LoaderState& position) {
  checkpoint::TrainingInfo& info = run.progress;
  info.loader = nlohmann::ordered_json(position);
  info.identity = run.identity;
  const std::filesystem::path directory = run.checkpoints->begin(info.total_steps);
  run.policy.save(directory / "policy/weights",
                  run.config.checkpointing.save_optimizer ? (directory / "policy/optimizer").string() : "");
  copy_tokenizer(run.text.tokenizer_dir, directory / "policy/tokenizer");
  run.checkpoints->commit(info.total_steps, info, run.resolved_config);
}

// A disk without room is for others to mend: the run goes on meanwhile, and waits for a moment before it ends.
void RunBook::save_with_patience(const data::LoaderState& position, bool is_last) {
  constexpr double kPatienceS = 30;
  for (const telemetry::Stopwatch waited;; std::this_thread::sleep_for(std::chrono::seconds(1))) {
    try {
      save_checkpoint(run_, position);
      save_missed_ = false;
      saved_ = run_.progress.total_steps;
      return;
    } catch (const std::exception& error) {
      run_.checkpoints->abandon(run_.progress.total_steps);
      const std::string what = error.what();
      const bool full = what.find(std::strerror(ENOSPC)) != std::string::npos ||
                        what.find(std::strerror(EDQUOT)) != std::string::npos;
      if (!full || (is_last && (waited.seconds() > kPatienceS || run_.interrupted > 1))) throw;
      run_.console.line(
          fmt::format("step {} is not saved: {}. Free space in checkpointing.checkpoint_dir; it is tried "
                      "again {}",
                      run_.progress.total_steps, error.what(),
                      is_last ? fmt::format("for {:.0f} s", kPatienceS) : "after the next step"));
    }
    save_missed_ = true;
    if (!is_last) return;
  }
}

void RunBook::report(const TrainingStep& step, telemetry::StepSize size) {
  const Metrics& seconds = timer_.seconds();
  run_.log.add("train", step.metrics);
  run_.log.add("timing/train", seconds);
  size.valid_tokens = step.metrics.at("global_valid_toks");
  size.devices = run_.placement.world();
  size.trainers = run_.placement.trainers.count, size.generators = run_.placement.generators.count;
  run_.log.add("performance", telemetry::performance_metrics(seconds, size));
  run_.log.end_step(step.number);
  run_.console.step(step.number, course_.last_step, step.metrics, seconds);
  if (nonfinite_steps_ == 0) return;
  const int64_t most = course_.max_nonfinite_steps;
  run_.console.line(fmt::format(
      "step {}: loss or gradient was not finite (grad_norm {}); the update was skipped ({} of at most {} in a row)",
      step.number, step.trained.grad_norm, nonfinite_steps_, most));
  if (nonfinite_steps_ < most) return;
  fail(
      ErrorKind::data,
      "{} steps in a row had a loss or gradient that was not finite; stopping. The last good weights are in the newest "
      "checkpoint. Lower policy.optimizer.kwargs.lr or policy.max_grad_norm, or raise {}.max_nonfinite_steps",
      nonfinite_steps_, course_.block);
}

bool RunBook::is_traced(int64_t step) const {
  const std::vector<double>& steps = run_.config.logger.profile_steps;
  return std::find(steps.begin(), steps.end(), static_cast<double>(step)) != steps.end();
}

// log_dir/profile-step<step>-rank<rank>.json, of a step that logger.profile_steps names.
void RunBook::end_trace(int64_t step) {
  if (!is_traced(step)) return;
  const std::filesystem::path folder = std::filesystem::absolute(run_.log.directory());
  run_.policy.save_trace(folder / fmt::format("profile-step{}.json", step));
  run_.console.line(fmt::format("step {}: traced into {}/profile-step{}-rank*.json (chrome://tracing, Perfetto)", step,
                                folder.string(), step));
}

}  // namespace hexad::algorithm
