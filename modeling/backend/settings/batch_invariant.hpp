// What runs batch-invariant (modeling/op/cuda/batch_invariant.hpp): the same answer for training and for generation.
#pragma once
#include <string>

#include "modeling/backend/settings/model_settings.hpp"

namespace hexad::modeling {

// Empty, or what stands in the way: "the model has experts".
std::string batch_invariant_obstacle(const ModelConfig& config, at::ScalarType dtype, at::Device device);

// Of a training backend whose replicas have `ranks` ranks (`sizes`: the keys that say so). Nothing unless
// policy.batch_invariant is set. Throws sdk::Error.
void check_batch_invariant(const ModelSettings& settings, at::Device device, int64_t ranks, const char* sizes);

}  // namespace hexad::modeling
