#include "core/algorithm/grpo/rollouts.hpp"

#include <algorithm>

#include "core/algorithm/grpo/phases.hpp"
#include "core/algorithm/reward/reward.hpp"

namespace hexad::algorithm {

rollout::Rollout roll_out(Grpo& run, const std::vector<data::SharedDatum>& prompts, int64_t step, int64_t round) {
  const config::GrpoConfig& grpo = run.config.grpo;
  const auto sampling = with_imposed_lengths(run.sampling, run.config.policy.generation.imposed_lengths);
  const rollout::Plan plan{sampling,
                           static_cast<int64_t>(prompts.size()),
                           grpo.num_generations_per_prompt,
                           static_cast<uint64_t>(grpo.seed),
                           step,
                           round,
                           grpo.max_rollout_turns,
                           grpo.truncated_response_ends_sample};
  return rollout::run_rollout(run.generation, run.environments, run.text, prompts, plan);
}

StepSamples::StepSamples(const Grpo& run, int64_t step)
    : run_(run),
      step_(step),
      rows_(run.config.grpo.num_prompts_per_step * run.config.grpo.num_generations_per_prompt),
      varied_(rows_, run.config.grpo.dynamic_sampling_max_gen_batches) {}

void StepSamples::take_varied(const rollout::Rollout& rollout, Metrics& metrics) {
  metrics["reward"] = mean_reward(rollout.batch);
  complete_ = varied_.add(rollout, reward_std(run_.config, rollout));
  if (!complete_) {
    run_.console.line(fmt::format(
        "step {}: {} of {} samples are in groups whose rewards vary, after {} of at most {} rollouts", step_,
        varied_.kept(), rows_, varied_.generations(), run_.config.grpo.dynamic_sampling_max_gen_batches + 1));
    const int64_t few = std::clamp<int64_t>(run_.config.grpo.dynamic_sampling_max_gen_batches, 1, FlatRewards::kSteps);
    if (varied_.kept() == 0 && varied_.generations() == few)
      run_.console.line(fmt::format("step {}: no group varies. For example: {}", step_, judged_sample(rollout, 0)));
    return;
  }
  metrics["filtered_reward"] = mean_reward(complete_->batch);
  metrics["dynamic_sampling_num_gen_batches"] = static_cast<double>(varied_.generations());
  metrics["dynamic_sampling_num_discarded_valid_samples"] = static_cast<double>(varied_.discarded_valid_samples());
}

void StepSamples::print_incomplete() const {
  if (!run_.config.grpo.use_dynamic_sampling) return;
  run_.console.line(
      fmt::format("step {}: the data ended with {} of {} samples in groups whose rewards vary; they are not trained on",
                  step_, varied_.kept(), rows_));
}

}  // namespace hexad::algorithm
