#include "core/algorithm/grpo/phases.hpp"

#include "core/algorithm/reward/penalty.hpp"
#include "core/algorithm/reward/reward.hpp"

namespace hexad::algorithm {

std::vector<int64_t> response_lengths(const data::Batch& batch) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto mask = batch.row<float>("token_mask", i);
    lengths.push_back(std::ranges::count(mask, 1.0f));
  }
  return lengths;
}

void shape(const config::GrpoConfig& config, rollout::Rollout& rollout) {
  data::Batch& batch = rollout.batch;
  const auto rewards = batch.at("rewards").span<float>();
  const auto truncated = std::as_const(batch).at("truncated").span<uint8_t>();
  if (const auto& scaling = config.reward_scaling; scaling.enabled) {
    const RewardScaling scale = {scaling.source_min, scaling.source_max, scaling.target_min, scaling.target_max};
    scale_rewards(rewards, scale);
    for (auto& [name, component] : rollout.components) scale_rewards(component, scale);
  }
  if (const auto& shaping = config.reward_shaping; shaping.enabled) {
    batch.set("unshaped_rewards", batch.at("rewards").clone(), data::Axis::sample);
    shape_rewards(rewards, response_lengths(batch), truncated,
                  {shaping.overlong_buffer_length, shaping.overlong_buffer_penalty, shaping.max_response_length,
                   shaping.stop_properly_penalty_coef});
  }
  if (config.overlong_filtering) filter_overlong(batch.at("sample_mask").span<float>(), truncated);
}

void penalize_and_shape(const Grpo& run, rollout::Rollout& rollout) {
  penalize(run.config.reward_penalties, run.text, rollout);
  shape(run.config.grpo, rollout);
}

}  // namespace hexad::algorithm
