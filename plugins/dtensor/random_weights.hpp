// Weights for training from scratch.
#pragma once
#include <cstdint>
#include <filesystem>

#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

// Does `dir` hold safetensors (model.safetensors or model.safetensors.index.json)?
bool has_weights(const std::filesystem::path& dir);

// Fills the current weights as transformers initialises a model: norms 1, biases 0, matrices normal(0,
// initializer_range). A weight's values depend on `seed` and its name alone, so any number of ranks makes the same
// model.
void randomize_weights(ShardedModel& model, int64_t seed);

}  // namespace hexad::dtensor
