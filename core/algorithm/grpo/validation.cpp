#include "core/algorithm/grpo/phases.hpp"

#include "core/algorithm/reward/reward.hpp"
#include "lib/base/said/reported.hpp"

namespace hexad::algorithm {
namespace {

// The share of prompts with a sample that has a reward, of those with samples that could be scored; `k` samples each.
double pass_rate(const data::Batch& batch, int64_t k) {
  const auto rewards = batch.at("rewards").span<float>();
  const std::vector<float> valid = scored(batch);
  double prompts = 0, passed = 0;
  for (int64_t begin = 0; begin < batch.size(); begin += k) {
    bool any_valid = false, any_passed = false;
    for (int64_t i = begin; i < begin + k; ++i) {
      any_valid |= valid[i] != 0;
      any_passed |= valid[i] != 0 && rewards[i] > 0;
    }
    prompts += any_valid, passed += any_passed;
  }
  return prompts > 0 ? passed / prompts : 0;
}

}  // namespace

int64_t validation_prompts(const Grpo& run) {
  const int64_t all = run.prompts.validation().prompts.size();
  return std::min(run.config.grpo.max_val_samples.value_or(all), all);
}

Metrics validate(Grpo& run) {
  const config::GrpoConfig& grpo = run.config.grpo;
  const int64_t count = validation_prompts(run);
  const std::vector<data::SharedDatum> prompts = run.prompts.validation().prompts.range(0, count);
  // Its samples are a stream of their own, the same at every validation: curves differ by the weights alone.
  const uint64_t seed = static_cast<uint64_t>(grpo.seed) ^ 0x76616c6964617465ull;
  const rollout::Plan plan{run.sampling,
                           count,
                           grpo.val_num_generations_per_prompt,
                           seed,
                           0,
                           0,
                           grpo.max_rollout_turns,
                           grpo.truncated_response_ends_sample,
                           grpo.val_batch_size.value_or(0)};
  const rollout::Rollout rollout = rollout::run_rollout(run.generation, run.environments, run.text, prompts, plan);
  run.generation.sleep(
      std::min<int64_t>(1, run.config.policy.generation.colocated.sleep_level));  // it keeps its weights
  Metrics metrics = rollout.metrics;
  const auto rewards = rollout.batch.at("rewards").span<float>();
  metrics["accuracy"] = mean_reward(rollout.batch);
  metrics["avg_length"] = rollout.metrics.at("mean_gen_tokens_per_sample");
  if (const int64_t k = grpo.val_num_generations_per_prompt; k > 1) metrics["pass_k"] = pass_rate(rollout.batch, k);
  add_reported(metrics, rollout.reported.values());
  add_reported(metrics, rollout.of_generators);
  log_samples({run.log, run.config.logger.samples_per_step, run.text.tokenizer, false}, rollout,
              run.progress.total_steps, false);
  for (int64_t i = 0; i < std::min(run.config.logger.num_val_samples_to_print, count); ++i) {
    run.console.line(fmt::format("validation sample: {} -> {} (reward {})", rollout.prompts[i]->text,
                                 rollout.responses[i], rewards[i]));
  }
  return metrics;
}
}  // namespace hexad::algorithm
