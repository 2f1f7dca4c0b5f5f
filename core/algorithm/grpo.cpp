#include "core/algorithm/grpo.hpp"

#include "core/algorithm/draw.hpp"

namespace hexad::algorithm {

Ending grpo_train(Grpo& run) {
  if (run.config.policy.generation.colocated.sleep_level == 2)
    run.generation.sleep(2);  // the first refit brings weights: no second set beside those it loaded
  telemetry::Timer timer;
  const auto update_generators = [&] {
    if (run.generation.stale()) run.generation.refit();
  };
  StepBook book(run, timer, update_generators);
  while (!book.is_over()) {
    Step step = book.begin();
    Ending ending;
    {
      const auto total = timer.measure("total_step_time");
      // Rollouts: the generators get the newest weights, then draw G responses to every prompt and have them scored.
      {
        const auto time = timer.measure("prepare_for_generation/total");
        if (run.generation.stale()) {
          const auto transfer = timer.measure("prepare_for_generation/transfer_and_update_weights");
          update_generators();
        }
      }
      if (!draw(run, timer, step)) break;
      learn(run, timer, step);
      ending = book.close(step, run.prompts.state());
    }
    book.report(step);
    if (ending != Ending::finished) return ending;
  }
  book.finish(run.prompts.state());
  return Ending::finished;
}

}  // namespace hexad::algorithm
