#include "core/algorithm/grpo/step.hpp"

#include <cmath>

#include "core/algorithm/grpo/phases.hpp"
#include "core/algorithm/reward/reward.hpp"

namespace hexad::algorithm {

LoopSettings loop_settings(const Grpo& run) {
  const config::GrpoConfig& grpo = run.config.grpo;
  LoopSettings settings;
  settings.block = "grpo";
  settings.steps_per_epoch = run.prompts.steps_per_epoch();
  settings.last_step = std::min(grpo.max_num_steps, grpo.max_num_epochs * settings.steps_per_epoch);
  settings.examples_per_step = grpo.num_prompts_per_step;
  settings.val_period = grpo.val_period;
  settings.val_start_at = grpo.val_start_at;
  settings.val_at_start = grpo.val_at_start;
  settings.val_at_end = grpo.val_at_end;
  settings.stop_metric = grpo.stop_at_validation_metric;
  settings.stop_threshold = grpo.stop_at_validation_threshold.value_or(INFINITY);
  settings.max_nonfinite_steps = grpo.max_nonfinite_steps;
  return settings;
}

void add_step_metrics(GrpoStep& step) {
  step.metrics.insert(step.rollout.metrics.begin(), step.rollout.metrics.end());
  step.metrics.try_emplace("reward", mean_reward(step.rollout.batch));
  step.reported = step.rollout.reported.values();
  add_reported(step.reported, step.rollout.of_generators);
}

Metrics add_advantages(const Grpo& run, rollout::Rollout& rollout) {
  return add_advantages(run.config, rollout, needs_prev_logprobs(run.config, run.policy.loss_needs()));
}

void save(Grpo& run, Loop& loop) {
  run.progress.weight_version = run.generation.weight_version();
  loop.save();
}

void finish(Grpo& run, Loop& loop) {
  run.progress.weight_version = run.generation.weight_version();
  loop.finish();
}

void give_up(Grpo& run, Loop& loop, const Interrupted& why) {
  loop.give_up(why);
  if (!run.placement.apart()) run.generation.sleep(run.config.policy.generation.colocated.sleep_level);
}

void report(Grpo& run, Loop& loop, const GrpoStep& step) {
  const bool has_prev = needs_prev_logprobs(run.config, run.policy.loss_needs());
  log_samples({run.log, run.config.logger.samples_per_step, run.text.tokenizer, has_prev}, step.rollout, step.number,
              true);
  telemetry::StepSize size;
  size.samples = step.rollout.batch.size();
  size.total_tokens = step.rollout.batch.tokens();
  loop.report(step, size);
  for (const std::string& hint : run.flat_rewards.look(step.rollout, step.number)) run.console.line(hint);
}

}  // namespace hexad::algorithm
