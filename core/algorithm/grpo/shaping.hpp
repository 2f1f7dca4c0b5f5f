// What becomes of rewards between environment and advantage.
#pragma once
#include "core/algorithm/grpo/grpo.hpp"

namespace hexad::algorithm {

// Scaling, shaping, overlong filtering, in NeMo-RL's order; changes `rewards` and `sample_mask`. Where rewards are
// shaped, adds `unshaped_rewards` (f32 [B]).
void shape(const config::GrpoConfig& config, rollout::Rollout& rollout);

// Penalties of responses (grpo.reward_penalties), then shape().
void penalize_and_shape(const Grpo& run, rollout::Rollout& rollout);

}  // namespace hexad::algorithm
