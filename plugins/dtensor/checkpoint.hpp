// Weights and optimizer state on disk: Hugging Face safetensors under full names, whatever the layout.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "modeling/parallel/optimizer.hpp"
#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

// Reads this rank's slice of every weight. Returns warnings (tensors that the model does not use, a reward head that is
// not stored and is made from `seed`). Throws modeling::Error: missing, truncated, wrong shape, not finite.
std::vector<std::string> load_weights(ShardedModel& model, const std::filesystem::path& dir, int32_t which,
                                      int64_t seed);

// Fills the current weights with random numbers (weight_source.hpp).
void randomize_weights(ShardedModel& model, int64_t seed);

// fp32 safetensors, config.json and, if the source has one, generation_config.json. All ranks take part; rank 0 writes,
// one gathered weight at a time. Complete on disk when it returns; throws on every rank when rank 0 failed.
void save_weights(ShardedModel& model, const std::filesystem::path& source_dir, const std::filesystem::path& dir);

// "<weight>.<state>" for every state of the optimizer, in fp32, and "steps".
void save_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir);
// Throws modeling::Error when the state is another optimizer's or another model's.
void load_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir);

}  // namespace hexad::dtensor
