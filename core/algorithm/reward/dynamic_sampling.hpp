// Dynamic sampling (DAPO): groups whose rewards do not vary teach nothing, so generation goes on until enough others
// came.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/rollout/rollout.hpp"

namespace hexad::algorithm {

// One training step's collection.
class DynamicSampling {
 public:
  // `train_rows`: num_prompts_per_step * num_generations_per_prompt; `max_batches`: dynamic_sampling_max_gen_batches.
  DynamicSampling(int64_t train_rows, int64_t max_batches) : train_rows_(train_rows), max_batches_(max_batches) {}

  // Adds the rows of one generation whose std is not 0. Returns the first train_rows rows once there are enough. Throws
  // Error(data) when there are still too few and this was generation number max_batches + 1 or later.
  std::optional<rollout::Rollout> add(const rollout::Rollout& generation, std::span<const float> std);

  int64_t kept() const { return kept_.batch.size(); }             // rows collected, capped at train_rows when complete
  int64_t discarded_valid_samples() const { return discarded_; }  // good rows beyond train_rows
  int64_t generations() const { return generations_; }

 private:
  int64_t train_rows_;
  int64_t max_batches_;
  int64_t generations_ = 0;
  int64_t discarded_ = 0;
  rollout::Rollout kept_;
};

}  // namespace hexad::algorithm
