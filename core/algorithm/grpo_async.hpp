// GRPO that trains while it generates, on weights of up to `max_trajectory_age_steps` before (NeMo-RL's asynchronous
// GRPO; Fu et al. 2025, AReaL). Off-policy samples are weighted by exp(training - generation log-prob) in the loss.
#pragma once
#include "core/algorithm/grpo.hpp"

namespace hexad::algorithm {

// As grpo_train, with generators on ranks of their own.
Ending grpo_train_async(Grpo& run, cluster::WorkerGroup& workers);

}  // namespace hexad::algorithm
