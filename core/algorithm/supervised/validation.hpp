// Validation of a policy that is trained on examples.
#pragma once
#include "core/algorithm/run/loop.hpp"
#include "core/algorithm/supervised/supervised.hpp"

namespace hexad::algorithm {

// Adds reference_policy_logprobs (f32 [T]), under the policy that the run began with.
void add_reference_logprobs(Supervised& run, data::Batch& batch);

// Over all validation batches, of which there is at least one: the mean loss of SFT, or of pairs what they tell.
Validation validate(Supervised& run);

}  // namespace hexad::algorithm
