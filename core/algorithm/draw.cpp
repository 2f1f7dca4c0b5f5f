#include "core/algorithm/draw.hpp"

#include "core/algorithm/reward/dynamic_sampling.hpp"

namespace hexad::algorithm {
namespace {

// G samples of the next prompts, scored; nothing at the end of the data. `round`: counts the rollouts of the step.
std::optional<rollout::Rollout> roll_out(Grpo& run, telemetry::Timer& timer, int64_t step, int64_t round) {
  const config::GrpoConfig& grpo = run.config.grpo;
  std::vector<const data::Datum*> prompts;
  {
    const auto time = timer.measure("data_processing");
    prompts = run.prompts.next();
    if (prompts.empty()) return std::nullopt;
  }
  std::optional<rollout::Rollout> rollout;
  {
    const auto time = timer.measure("generation");
    const auto sampling = with_imposed_lengths(run.sampling, run.config.policy.generation.imposed_lengths);
    const rollout::Plan plan{sampling,
                             static_cast<int64_t>(prompts.size()),
                             grpo.num_generations_per_prompt,
                             static_cast<uint64_t>(grpo.seed),
                             step,
                             round,
                             grpo.max_rollout_turns};
    rollout = rollout::run_rollout(run.generation, run.environments, run.text, prompts, plan);
  }
  timer.add("generation/environment", rollout->environment_seconds);
  const auto time = timer.measure("reward_calculation");
  judge(run, *rollout);
  return rollout;
}

// Rollouts until enough samples are in groups whose rewards vary (DAPO, Yu et al. 2025).
std::optional<rollout::Rollout> roll_out_until_varied(Grpo& run, telemetry::Timer& timer, Step& step) {
  const config::GrpoConfig& grpo = run.config.grpo;
  const int64_t rows = grpo.num_prompts_per_step * grpo.num_generations_per_prompt;
  DynamicSampling varied(rows, grpo.dynamic_sampling_max_gen_batches);
  while (const auto rollout = roll_out(run, timer, step.number, varied.generations())) {
    const auto time = timer.measure("dynamic_sampling");
    step.metrics["reward"] = mean_reward(rollout->batch);
    const auto enough = varied.add(*rollout, reward_std(grpo, rollout->batch));
    if (enough) {
      step.metrics["filtered_reward"] = mean_reward(enough->batch);
      step.metrics["dynamic_sampling_num_gen_batches"] = static_cast<double>(varied.generations());
      step.metrics["dynamic_sampling_num_discarded_valid_samples"] =
          static_cast<double>(varied.discarded_valid_samples());
      return enough;
    }
    run.console.line(
        fmt::format("step {}: {} of {} samples are in groups whose rewards vary, after {} of at most {} rollouts",
                    step.number, varied.kept(), rows, varied.generations(), grpo.dynamic_sampling_max_gen_batches + 1));
  }
  run.console.line(
      fmt::format("step {}: the data ended with {} of {} samples in groups whose rewards vary; they are not trained on",
                  step.number, varied.kept(), rows));
  return std::nullopt;
}

}  // namespace

bool draw(Grpo& run, telemetry::Timer& timer, Step& step) {
  auto rollout = run.config.grpo.use_dynamic_sampling ? roll_out_until_varied(run, timer, step)
                                                      : roll_out(run, timer, step.number, 0);
  if (!rollout) return false;
  step.rollout = std::move(*rollout);
  const auto time = timer.measure("generation");
  run.generation.sleep(run.config.policy.generation.colocated.sleep_level);
  return true;
}

}  // namespace hexad::algorithm
