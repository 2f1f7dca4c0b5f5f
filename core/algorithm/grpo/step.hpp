// A step of a loop over rollouts: what both loops have in common of it.
#pragma once
#include "core/algorithm/grpo/grpo.hpp"
#include "core/algorithm/run/loop.hpp"

namespace hexad::algorithm {

struct GrpoStep : Step {
  using Step::Step;
  rollout::Rollout rollout;
};

// What the block `grpo` says of the loop.
LoopSettings loop_settings(const Grpo& run);

// Adds what the rollout tells to the metrics, and "reward" where dynamic sampling has not.
void add_step_metrics(GrpoStep& step);

// Log-probs are known where something asked for them.
Metrics add_advantages(const Grpo& run, rollout::Rollout& rollout);

// Loop::save and Loop::finish, with the version of the generators' weights.
void save(Grpo& run, Loop& loop);
void finish(Grpo& run, Loop& loop);

// Loop::give_up, and generators that share their memory with trainers make room for the checkpoint.
void give_up(Grpo& run, Loop& loop, const Interrupted& why);

// The samples' log, and the loop's; and a hint after a few steps that taught nothing.
void report(Grpo& run, Loop& loop, const GrpoStep& step);

}  // namespace hexad::algorithm
