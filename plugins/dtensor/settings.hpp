// What the `policy` section says to this backend.
#pragma once
#include "modeling/backend/model_settings.hpp"
#include "modeling/parallel/optimizer.hpp"

namespace hexad::dtensor {

struct Settings : modeling::ModelSettings {
  modeling::OptimizerOptions optimizer;
  bool cpu_offload = false;  // shards, gradients and optimizer state stay on the host
  bool activation_checkpointing = false;
  bool reshard_after_forward = true;
};

// Throws sdk::Error or modeling::Error: features that are not available, wrong values, an unreadable config.json.
Settings read_settings(const sdk::Config& config);

}  // namespace hexad::dtensor
