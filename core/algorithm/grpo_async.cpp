#include "core/algorithm/grpo_async.hpp"

#include "core/algorithm/collector.hpp"
#include "core/algorithm/step_book.hpp"

namespace hexad::algorithm {

Ending grpo_train_async(Grpo& run, cluster::WorkerGroup& workers) {
  const config::AsyncGrpoConfig& config = run.config.grpo.async_grpo;
  telemetry::Timer timer;
  if (run.progress.total_steps > 0)
    run.console.line(fmt::format(
        "asynchronous GRPO: what was being drawn when step {} was saved is drawn again, by the weights of that step",
        run.progress.total_steps));
  const int64_t began = run.progress.total_steps;
  Collector collector(run, workers);
  const auto update_generators = [&] {
    if (!run.generation.stale()) return;
    if (!config.in_flight_weight_updates) collector.drain();
    run.generation.refit(config.recompute_kv_cache_after_weight_updates);
  };
  StepBook book(run, timer, update_generators);
  Ending ending = Ending::finished;
  while (!book.is_over() && ending == Ending::finished) {
    Step step = book.begin();
    {
      const auto total = timer.measure("total_step_time");
      // The generators get the newest weights and go on, with the groups of this step and those after it.
      {
        const auto time = timer.measure("weight_sync");
        update_generators();
      }
      collector.start_groups(book.last_step());
      {
        const auto time = timer.measure("exposed_generation");
        if (!collector.wait_for(step.number)) break;
      }
      {
        const auto time = timer.measure("reward_calculation");
        step.rollout = collector.take(step.number, step.metrics);
        judge(run, step.rollout);
      }
      learn(run, timer, step);
      collector.check_balance();
      ending = book.close(step, collector.position_after(step.number));
    }
    book.report(step);
  }
  const int64_t trained = run.progress.total_steps;
  if (ending == Ending::finished && !book.is_over() && trained > began) book.finish(collector.position_after(trained));
  collector.stop();
  collector.check_balance();
  const GroupCounts& counts = collector.counts();
  run.console.line(
      fmt::format("groups: {} started, {} trained, {} dropped", counts.started, counts.trained, counts.all_dropped()));
  return ending;
}

}  // namespace hexad::algorithm
