// Weights and optimizer state on disk: Hugging Face safetensors under full names, whatever the layout.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "plugins/megatron/weight_transfer.hpp"

namespace hexad::megatron {

// Reads this rank's slices of every weight. Returns warnings (modeling::StoredWeights). Throws
// modeling::Error: missing, truncated, wrong shape, not finite.
std::vector<std::string> load_weights(const Settings& settings, LocalWeights& weights, ShardedOptimizer& optimizer,
                                      const std::filesystem::path& dir, int32_t which);
void randomize_weights(const Settings& settings, LocalWeights& weights, ShardedOptimizer& optimizer, int64_t seed);

// All ranks take part; rank 0 writes, one weight at a time. Complete on disk when it returns; throws on every rank when
// rank 0 failed.
void save_weights(const Settings& settings, const Groups& groups, const LocalWeights& weights,
                  const WeightTransfer& transfer, const std::filesystem::path& dir);
void save_optimizer(const Groups& groups, const LocalWeights& weights, const ShardedOptimizer& optimizer,
                    const WeightTransfer& transfer, const std::filesystem::path& dir);
// Throws modeling::Error when the state is another optimizer's or another model's.
void load_optimizer(const LocalWeights& weights, ShardedOptimizer& optimizer, const std::filesystem::path& dir);

}  // namespace hexad::megatron
