#include "core/algorithm/grpo.hpp"

#include <cmath>

#include "core/algorithm/grpo_step.hpp"
#include "core/base/error.hpp"
#include "core/telemetry/performance.hpp"

namespace hexad::algorithm {

Ending grpo_train(Grpo& run) {
  const config::GrpoConfig& grpo = run.config.grpo;
  checkpoint::TrainingInfo& progress = run.progress;
  const int64_t last_step = std::min(grpo.max_num_steps, grpo.max_num_epochs * run.prompts.steps_per_epoch());
  const int64_t first_step = progress.total_steps;
  int64_t nonfinite_steps = 0;
  telemetry::Timer timer;
  const telemetry::Stopwatch since_start;

  const int64_t sleep_level = run.config.policy.generation.colocated.sleep_level;
  if (sleep_level == 2)
    run.generation.sleep(2);  // the first refit brings weights: no second set beside those it loaded
  if (grpo.val_at_start && progress.total_steps == 0) {
    run.log.add("validation", validate(run, timer));
    run.log.end_step(0);
  }
  while (progress.total_steps < last_step) {
    const int64_t step = progress.total_steps + 1;
    Ending ending = Ending::finished;
    timer.reset();
    run.policy.begin_step(step);
    begin_trace(run, step);
    Metrics metrics;
    rollout::Rollout rollout;
    cluster::TrainResult trained;
    {
      const auto total = timer.measure("total_step_time");
      std::vector<const data::Datum*> prompts;
      {
        const auto time = timer.measure("data_processing");
        prompts = run.prompts.next();
        if (prompts.empty()) return Ending::finished;
      }
      // Rollouts: the generator gets the newest weights, then draws G responses to every prompt and has them scored.
      {
        const auto time = timer.measure("prepare_for_generation/total");
        if (run.generation.stale()) {
          const auto transfer = timer.measure("prepare_for_generation/transfer_and_update_weights");
          run.generation.refit();
        }
      }
      {
        const auto time = timer.measure("generation");
        const auto sampling = with_imposed_lengths(run.sampling, run.config.policy.generation.imposed_lengths);
        rollout = rollout::run_rollout(run.generation, run.environments, run.text, sampling, prompts,
                                       grpo.num_generations_per_prompt, static_cast<uint64_t>(grpo.seed), step);
        run.generation.sleep(sleep_level);
      }
      {
        const auto time = timer.measure("reward_calculation");
        shape(grpo, rollout);
      }
      // Log-probs under the policy before the update, and under the reference policy.
      {
        const auto time = timer.measure("policy_and_reference_logprobs");
        add_logprobs(run.config, run.policy, rollout.batch);
      }
      {
        const auto time = timer.measure("advantage_calculation");
        metrics = add_advantages(run.config, rollout);
      }
      {
        const auto time = timer.measure("policy_training");
        trained = run.policy.train(rollout.batch, run.schedule.rate(), run.schedule.weight_decay());
        run.generation.mark_stale();
      }
      end_trace(run, step);
      metrics["lr"] = run.schedule.rate();
      run.schedule.step();
      nonfinite_steps = trained.skipped_steps > 0 ? nonfinite_steps + 1 : 0;

      progress.total_steps = step;
      progress.current_step = step % std::max<int64_t>(1, run.prompts.steps_per_epoch());
      progress.current_epoch = run.prompts.epoch();
      progress.consumed_samples += grpo.num_prompts_per_step;
      progress.total_valid_tokens += static_cast<int64_t>(trained.metrics["global_valid_toks"]);

      metrics.insert(trained.metrics.begin(), trained.metrics.end());
      metrics.insert(rollout.metrics.begin(), rollout.metrics.end());
      metrics["grad_norm"] = trained.grad_norm;
      metrics["skipped_steps"] = static_cast<double>(trained.skipped_steps);
      metrics["reward"] = mean(rollout.batch.at("rewards").span<float>());
      for (const auto& [name, value] : metrics) progress.metrics["train:" + name] = value;

      const bool last = step == last_step || run.interrupted > 0;
      if (last && run.interrupted > 0) ending = Ending::interrupted;
      if ((due(step, grpo.val_period) && step >= grpo.val_start_at) || (last && grpo.val_at_end)) {
        const Metrics validation = validate(run, timer);
        run.log.add("validation", validation);
        for (const auto& [name, value] : validation) progress.metrics["val:" + name] = value;
        if (grpo.stop_at_validation_metric && validation.contains(*grpo.stop_at_validation_metric) &&
            validation.at(*grpo.stop_at_validation_metric) >= grpo.stop_at_validation_threshold.value_or(INFINITY)) {
          ending = Ending::stopped_early;
        }
      }
      const auto& saving = run.config.checkpointing;
      const double mean_step_s = since_start.seconds() / static_cast<double>(step - first_step);
      if (ending == Ending::finished &&
          since_start.seconds() + mean_step_s > saving.checkpoint_must_save_by_s.value_or(INFINITY)) {
        run.console.line("checkpointing.checkpoint_must_save_by: the time is over; saving and stopping");
        ending = Ending::stopped_early;
      }
      if (run.checkpoints && (last || ending != Ending::finished || due(step, saving.save_period) ||
                              due(step, saving.ft_save_period.value_or(0)))) {
        const auto time = timer.measure("checkpointing");
        save(run);
      }
    }
    const Metrics& seconds = timer.seconds();
    run.log.add("train", metrics);
    run.log.add("timing/train", seconds);
    run.log.add("performance", telemetry::performance_metrics(seconds, {rollout.batch.size(), rollout.batch.tokens(),
                                                                        metrics["global_valid_toks"], run.devices}));
    log_samples(run, rollout, step);
    run.log.end_step(step);
    run.console.step(step, last_step, metrics, seconds);
    if (nonfinite_steps > 0) {
      run.console.line(fmt::format(
          "step {}: loss or gradient was not finite (grad_norm {}); the update was skipped ({} of at most {} in a row)",
          step, trained.grad_norm, nonfinite_steps, grpo.max_nonfinite_steps));
      if (nonfinite_steps >= grpo.max_nonfinite_steps) {
        fail(ErrorKind::data,
             "{} steps in a row had a loss or gradient that was not finite; stopping. The last good weights are in the "
             "newest "
             "checkpoint. Lower policy.optimizer.kwargs.lr or policy.max_grad_norm, or raise grpo.max_nonfinite_steps",
             nonfinite_steps);
      }
    }
    if (ending != Ending::finished) return ending;
  }
  return Ending::finished;
}

}  // namespace hexad::algorithm
