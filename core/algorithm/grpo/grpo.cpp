#include "core/algorithm/grpo/grpo.hpp"

#include "core/algorithm/grpo/phases.hpp"
#include "core/algorithm/grpo/rollouts.hpp"
#include "core/algorithm/grpo/step.hpp"

namespace hexad::algorithm {
namespace {

// On the newest weights.
void validate_if_due(Grpo& run, Loop& loop) {
  if (!loop.is_validation_due() || validation_prompts(run) == 0) return;
  const auto phase = loop.timer().measure("validation");
  try {
    if (run.generation.stale()) run.generation.refit();
    loop.validated({.metrics = validate(run)});
  } catch (const Interrupted& why) {
    give_up(run, loop, why);
  }
}

void train_steps(Grpo& run, Loop& loop) {
  const int64_t sleep_level = run.config.policy.generation.colocated.sleep_level;
  Timer& timer = loop.timer();
  validate_if_due(run, loop);
  while (!loop.is_over()) {
    GrpoStep step(loop.begin());
    auto total = timer.measure("total_step_time");
    // Refit: the generators get the newest weights.
    auto phase = timer.measure("prepare_for_generation/total");
    if (run.generation.stale()) {
      const auto transfer = timer.measure("prepare_for_generation/transfer_and_update_weights");
      run.generation.refit();
    }
    // Rollouts: G responses to every prompt, and their rewards.
    StepSamples samples(run, step.number);
    while (!samples.are_complete()) {
      phase = timer.measure("data_processing");
      const std::vector<data::SharedDatum> prompts = run.prompts.next();
      if (prompts.empty()) break;
      phase = timer.measure("generation");
      rollout::Rollout rollout = roll_out(run, prompts, step.number, samples.rollouts());
      timer.add("generation/environment", rollout.environment_seconds);
      phase = timer.measure("reward_calculation");
      penalize_and_shape(run, rollout);
      if (run.config.grpo.use_dynamic_sampling) {
        phase = timer.measure("dynamic_sampling");
        samples.take_varied(rollout, step.metrics);
      } else {
        samples.take_all(std::move(rollout));
      }
    }
    if (!samples.are_complete()) {
      samples.print_incomplete();
      loop.end_early(run.prompts.state());
      break;
    }
    step.rollout = samples.take();
    phase = timer.measure("generation");
    run.generation.sleep(sleep_level);
    // Log-probs under the policy before the update, and under the reference policy.
    phase = timer.measure("policy_and_reference_logprobs");
    add_logprobs(run.config, run.policy, step.rollout.batch);
    // Advantages: the reward less the baseline of the prompt's group, over the group's deviation.
    phase = timer.measure("advantage_calculation");
    step.metrics.merge(add_advantages(run, step.rollout));
    // The clipped policy gradient, in micro-batches, and the optimizer's step.
    phase = timer.measure("policy_training");
    step.trained = run.policy.train(step.rollout.batch, run.schedule.rate(), run.schedule.weight_decay());
    run.generation.mark_stale();
    phase.end();
    add_step_metrics(step);
    loop.tell(step, run.prompts.too_long());
    loop.count(step, run.prompts.state());
    validate_if_due(run, loop);
    if (loop.is_checkpoint_due()) {
      phase = timer.measure("checkpointing");
      save(run, loop);
      phase.end();
    }
    total.end();
    report(run, loop, step);
  }
  if (loop.ending() == Ending::finished) validate_if_due(run, loop);
}

}  // namespace

Ending train_grpo(Grpo& run) {
  if (run.config.policy.generation.colocated.sleep_level == 2)
    run.generation.sleep(2);  // the first refit brings weights: no second set beside those it loaded
  Loop loop(run, loop_settings(run));
  try {
    train_steps(run, loop);
  } catch (const Interrupted& why) {
    give_up(run, loop, why);
  }
  finish(run, loop);
  return loop.ending();
}

}  // namespace hexad::algorithm
