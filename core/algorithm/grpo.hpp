// Group Relative Policy Optimization (Shao et al. 2024, DeepSeekMath): the loop, and what it works on.
#pragma once
#include "core/algorithm/run/run.hpp"
#include "core/rollout/prompts.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::algorithm {

// The parts of a GRPO run. Borrowed; train_run.cpp makes them.
struct Grpo : Run {
  rollout::Generation& generation;
  rollout::Prompts& prompts;
  const rollout::Environments& environments;
  rollout::Sampling sampling;
};

// Trains until max_num_steps, the end of the data, an early stop or an interruption. Throws Error.
Ending grpo_train(Grpo& run);

}  // namespace hexad::algorithm
