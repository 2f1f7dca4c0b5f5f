// Generators go on while the policy trains: the groups of later steps are drawn by weights that are a little older.
#include "core/algorithm/grpo/collector.hpp"
#include "core/algorithm/grpo/phases.hpp"
#include "core/algorithm/grpo/step.hpp"

namespace hexad::algorithm {
namespace {

void update_generators(Grpo& run, Collector& collector) {
  const config::AsyncGrpoConfig& config = run.config.grpo.async_grpo;
  if (!run.generation.stale()) return;
  if (!config.in_flight_weight_updates && !collector.drain()) return;  // interrupted
  run.generation.refit(config.recompute_kv_cache_after_weight_updates);
}

// On the newest weights.
void validate_if_due(Grpo& run, Loop& loop, Collector& collector) {
  if (!loop.is_validation_due() || validation_prompts(run) == 0) return;
  const auto phase = loop.timer().measure("validation");
  try {
    update_generators(run, collector);
    loop.validated({.metrics = validate(run)});
  } catch (const Interrupted& why) {
    loop.give_up(why);
  }
}

void train_steps(Grpo& run, Loop& loop, Collector& collector) {
  const int64_t began = run.progress.total_steps;
  Timer& timer = loop.timer();
  validate_if_due(run, loop, collector);
  while (!loop.is_over()) {
    GrpoStep step(loop.begin());
    auto total = timer.measure("total_step_time");
    // Refit: the generators get the newest weights and go on, with the groups of this step and those after it.
    auto phase = timer.measure("weight_sync");
    update_generators(run, collector);
    phase.end();
    collector.start_groups(loop.last_step());
    // Rollouts: what of them is not there yet, and their rewards.
    phase = timer.measure("exposed_generation");
    if (!collector.wait_for(step.number)) {
      const int64_t trained = run.progress.total_steps;
      if (!loop.is_interrupted() && trained > began) loop.end_early(collector.position_after(trained));
      break;
    }
    phase = timer.measure("reward_calculation");
    step.rollout = collector.take(step.number, step.metrics);
    penalize_and_shape(run, step.rollout);
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
    collector.check_balance();
    add_step_metrics(step);
    loop.tell(step, run.prompts.too_long());
    loop.count(step, collector.position_after(step.number));
    validate_if_due(run, loop, collector);
    if (loop.is_checkpoint_due()) {
      phase = timer.measure("checkpointing");
      save(run, loop);
      phase.end();
    }
    total.end();
    report(run, loop, step);
  }
  if (loop.ending() == Ending::finished && run.progress.total_steps > began) validate_if_due(run, loop, collector);
}

}  // namespace

Ending train_grpo_async(Grpo& run, cluster::WorkerGroup& workers) {
  if (run.progress.total_steps > 0)
    run.console.line(fmt::format(
        "asynchronous GRPO: what was being drawn when step {} was saved is drawn again, by the weights of that step",
        run.progress.total_steps));
  Collector collector(run, workers);
  Loop loop(run, loop_settings(run));
  try {
    train_steps(run, loop, collector);
  } catch (const Interrupted& why) {
    loop.give_up(why);
  }
  finish(run, loop);
  collector.stop();
  collector.check_balance();
  const GroupCounts& counts = collector.counts();
  run.console.line(
      fmt::format("groups: {} started, {} trained, {} dropped", counts.started, counts.trained, counts.all_dropped()));
  return loop.ending();
}

}  // namespace hexad::algorithm
