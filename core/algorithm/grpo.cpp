#include "core/algorithm/grpo.hpp"

#include "core/algorithm/step_book.hpp"

namespace hexad::algorithm {

Ending grpo_train(Grpo& run) {
  const config::GrpoConfig& grpo = run.config.grpo;
  const int64_t sleep_level = run.config.policy.generation.colocated.sleep_level;
  if (sleep_level == 2)
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
          update_generators();
        }
      }
      {
        const auto time = timer.measure("generation");
        const auto sampling = with_imposed_lengths(run.sampling, run.config.policy.generation.imposed_lengths);
        step.rollout =
            rollout::run_rollout(run.generation, run.environments, run.text, sampling, prompts,
                                 grpo.num_generations_per_prompt, static_cast<uint64_t>(grpo.seed), step.number);
        run.generation.sleep(sleep_level);
      }
      learn(run, timer, step);
      ending = book.close(step, run.prompts.state());
    }
    book.report(step);
    if (ending != Ending::finished) return ending;
  }
  return Ending::finished;
}

}  // namespace hexad::algorithm
