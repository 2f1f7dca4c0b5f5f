#include "core/algorithm/step_book.hpp"

#include <cmath>

#include "core/algorithm/run/sample_log.hpp"

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
    step.metrics.merge(add_advantages(run.config, rollout, needs_prev_logprobs(run.config, run.policy.loss_needs())));
  }
  {
    const auto time = timer.measure("policy_training");
    step.trained = run.policy.train(rollout.batch, run.schedule.rate(), run.schedule.weight_decay());
    run.generation.mark_stale();
  }
}

namespace {

Course course_of(const Grpo& run) {
  const config::GrpoConfig& grpo = run.config.grpo;
  Course course;
  course.block = "grpo";
  course.steps_per_epoch = run.prompts.steps_per_epoch();
  course.last_step = std::min(grpo.max_num_steps, grpo.max_num_epochs * course.steps_per_epoch);
  course.examples_per_step = grpo.num_prompts_per_step;
  course.val_period = grpo.val_period;
  course.val_start_at = grpo.val_start_at;
  course.val_at_start = grpo.val_at_start;
  course.val_at_end = grpo.val_at_end;
  course.stop_metric = grpo.stop_at_validation_metric;
  course.stop_threshold = grpo.stop_at_validation_threshold.value_or(INFINITY);
  course.max_nonfinite_steps = grpo.max_nonfinite_steps;
  return course;
}

}  // namespace

StepBook::StepBook(Grpo& run, telemetry::Timer& timer, UpdateGenerators update_generators)
    : run_(run), book_(run, timer, course_of(run), [&run, &timer, update = std::move(update_generators)] {
        Validation validation{.metrics = validate(run, timer, update)};
        run.progress.weight_version = run.generation.weight_version();
        return validation;
      }) {}

Step StepBook::begin() {
  Step step;
  step.number = book_.begin();
  return step;
}

Ending StepBook::close(Step& step, const data::LoaderState& position) {
  run_.progress.weight_version = run_.generation.weight_version();
  step.metrics.insert(step.trained.metrics.begin(), step.trained.metrics.end());
  step.metrics.insert(step.rollout.metrics.begin(), step.rollout.metrics.end());
  step.metrics.try_emplace("reward", mean_reward(step.rollout.batch));
  return book_.close(step, position);
}

void StepBook::finish(const data::LoaderState& position) {
  run_.progress.weight_version = run_.generation.weight_version();
  book_.finish(position);
}

void StepBook::report(const Step& step) {
  log_samples(run_, step.rollout, step.number);
  telemetry::StepSize size;
  size.samples = step.rollout.batch.size();
  size.total_tokens = step.rollout.batch.tokens();
  book_.report(step, size);
}

}  // namespace hexad::algorithm
