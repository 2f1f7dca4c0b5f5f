#include "core/algorithm/step_book.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <thread>

#include "core/base/error.hpp"
#include "core/telemetry/performance.hpp"

namespace hexad::algorithm {

void learn(Grpo& run, telemetry::Timer& timer, Step& step) {
  rollout::Rollout& rollout = step.rollout;
  // Log-probs under the policy before the update, and under the reference policy.
  {
    const auto time = timer.measure("policy_and_reference_logprobs");
    add_logprobs(run.config, run.policy, rollout.batch);
  }
  {
    const auto time = timer.measure("advantage_calculation");
    step.metrics.merge(add_advantages(run.config, rollout));
  }
  {
    const auto time = timer.measure("policy_training");
    step.trained = run.policy.train(rollout.batch, run.schedule.rate(), run.schedule.weight_decay());
    run.generation.mark_stale();
  }
}

StepBook::StepBook(Grpo& run, telemetry::Timer& timer, UpdateGenerators update_generators)
    : run_(run),
      timer_(timer),
      update_generators_(std::move(update_generators)),
      last_step_(
          std::min(run.config.grpo.max_num_steps, run.config.grpo.max_num_epochs * run.prompts.steps_per_epoch())),
      first_step_(run.progress.total_steps) {
  if (!run.config.grpo.val_at_start || first_step_ > 0) return;
  run.log.add("validation", validate(run, timer, update_generators_));
  run.log.end_step(0);
}

Step StepBook::begin() {
  Step step;
  step.number = run_.progress.total_steps + 1;
  timer_.reset();
  run_.policy.begin_step(step.number);
  begin_trace(run_, step.number);
  return step;
}

Ending StepBook::close(Step& step, const data::LoaderState& position) {
  const config::GrpoConfig& grpo = run_.config.grpo;
  checkpoint::TrainingInfo& progress = run_.progress;
  cluster::TrainResult& trained = step.trained;
  Metrics& metrics = step.metrics;
  end_trace(run_, step.number);
  metrics["lr"] = run_.schedule.rate();
  run_.schedule.step();
  nonfinite_steps_ = trained.skipped_steps > 0 ? nonfinite_steps_ + 1 : 0;

  progress.total_steps = step.number;
  progress.current_step = step.number % std::max<int64_t>(1, run_.prompts.steps_per_epoch());
  progress.current_epoch = position.epoch;
  progress.consumed_samples += grpo.num_prompts_per_step;
  progress.total_valid_tokens += static_cast<int64_t>(trained.metrics["global_valid_toks"]);

  metrics.insert(trained.metrics.begin(), trained.metrics.end());
  metrics.insert(step.rollout.metrics.begin(), step.rollout.metrics.end());
  metrics["grad_norm"] = trained.grad_norm;
  metrics["skipped_steps"] = static_cast<double>(trained.skipped_steps);
  metrics.try_emplace("reward", mean(step.rollout.batch.at("rewards").span<float>()));
  for (const auto& [name, value] : metrics) progress.metrics["train:" + name] = value;

  Ending ending = Ending::finished;
  const bool last = step.number == last_step_ || run_.interrupted > 0;
  if (last && run_.interrupted > 0) ending = Ending::interrupted;
  if ((due(step.number, grpo.val_period) && step.number >= grpo.val_start_at) || (last && grpo.val_at_end)) {
    const Metrics validation = validate_now();
    if (grpo.stop_at_validation_metric && validation.contains(*grpo.stop_at_validation_metric) &&
        validation.at(*grpo.stop_at_validation_metric) >= grpo.stop_at_validation_threshold.value_or(INFINITY)) {
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

Metrics StepBook::validate_now() {
  Metrics validation = validate(run_, timer_, update_generators_);
  run_.log.add("validation", validation);
  for (const auto& [name, value] : validation) run_.progress.metrics["val:" + name] = value;
  validated_ = run_.progress.total_steps;
  return validation;
}

void StepBook::finish(const data::LoaderState& position) {
  const int64_t step = run_.progress.total_steps;
  if (step == first_step_) return;
  if (run_.config.grpo.val_at_end && validated_ != step) {
    validate_now();
    run_.log.end_step(step);
  }
  if (run_.checkpoints && saved_ != step) save_with_patience(position, /*is_last=*/true);
}

// A disk without room is for others to mend: the run goes on meanwhile, and waits for a moment before it ends.
void StepBook::save_with_patience(const data::LoaderState& position, bool is_last) {
  constexpr double kPatienceS = 30;
  for (const telemetry::Stopwatch waited;; std::this_thread::sleep_for(std::chrono::seconds(1))) {
    try {
      save(run_, position);
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

void StepBook::report(const Step& step) {
  const Metrics& seconds = timer_.seconds();
  const cluster::TrainResult& trained = step.trained;
  run_.log.add("train", step.metrics);
  run_.log.add("timing/train", seconds);
  telemetry::StepSize size;
  size.samples = step.rollout.batch.size();
  size.total_tokens = step.rollout.batch.tokens();
  size.valid_tokens = step.metrics.at("global_valid_toks");
  size.devices = run_.placement.world();
  size.trainers = run_.placement.trainers.count, size.generators = run_.placement.generators.count;
  run_.log.add("performance", telemetry::performance_metrics(seconds, size));
  log_samples(run_, step.rollout, step.number);
  run_.log.end_step(step.number);
  run_.console.step(step.number, last_step_, step.metrics, seconds);
  if (nonfinite_steps_ == 0) return;
  const int64_t most = run_.config.grpo.max_nonfinite_steps;
  run_.console.line(fmt::format(
      "step {}: loss or gradient was not finite (grad_norm {}); the update was skipped ({} of at most {} in a row)",
      step.number, trained.grad_norm, nonfinite_steps_, most));
  if (nonfinite_steps_ < most) return;
  fail(
      ErrorKind::data,
      "{} steps in a row had a loss or gradient that was not finite; stopping. The last good weights are in the newest "
      "checkpoint. Lower policy.optimizer.kwargs.lr or policy.max_grad_norm, or raise grpo.max_nonfinite_steps",
      nonfinite_steps_);
}

}  // namespace hexad::algorithm
