// Group Relative Policy Optimization (Shao et al. 2024, DeepSeekMath): the loop, and what it works on.
#pragma once
#include "core/algorithm/grpo/flat_rewards.hpp"
#include "core/algorithm/run/training.hpp"
#include "core/rollout/prompts.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::algorithm {

// The parts of a GRPO run. Borrowed; run/train_run.cpp makes them.
struct Grpo : Training {
  rollout::Generation& generation;
  rollout::Prompts& prompts;
  const rollout::Environments& environments;
  rollout::Sampling sampling;
  FlatRewards flat_rewards = {};
};

// Trains until max_num_steps, the end of the data, an early stop or an interruption. Throws Error.
Ending train_grpo(Grpo& run);

// The same with generators that go on while the policy trains (grpo.async_grpo): a step is trained on samples whose
// tokens are at most max_trajectory_age_steps old.
Ending train_grpo_async(Grpo& run, cluster::WorkerGroup& workers);

}  // namespace hexad::algorithm
