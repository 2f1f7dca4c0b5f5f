// The samples of a synchronous step.
#pragma once
#include "core/algorithm/step_book.hpp"

namespace hexad::algorithm {

// Draws and scores the samples of `step` from the generators' weights: one rollout, or with grpo.use_dynamic_sampling as
// many as it takes until enough samples are in groups whose rewards vary. Shapes their rewards. False: the data ended
// before there were enough. Throws Error(data) after grpo.dynamic_sampling_max_gen_batches + 1 rollouts.
bool draw(Grpo& run, telemetry::Timer& timer, Step& step);

}  // namespace hexad::algorithm
