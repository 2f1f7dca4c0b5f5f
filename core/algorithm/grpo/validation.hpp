// Validation of a policy that is trained on rollouts.
#pragma once
#include "core/algorithm/grpo/grpo.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// How many validation prompts are drawn; 0: there is nothing to validate on.
int64_t validation_prompts(const Grpo& run);

// Runs the validation prompts, of which there is at least one, on the weights that the generators have; returns
// accuracy, avg_length and, with several samples a prompt, pass_k.
Metrics validate(Grpo& run);

}  // namespace hexad::algorithm
