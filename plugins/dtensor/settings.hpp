// What the `policy` section says to this backend.
#pragma once
#include <optional>

#include "modeling/backend/router_replay.hpp"
#include "modeling/backend/settings/context_settings.hpp"
#include "modeling/backend/settings/model_settings.hpp"
#include "modeling/parallel/optimizer.hpp"

namespace hexad::dtensor {

struct Settings : modeling::ModelSettings {
  int64_t dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1;  // ranks; their product is the world
  bool sequence_parallel = false;                          // only with tp above 1
  modeling::ContextSettings context;                       // how the cp ranks exchange keys and values
  int64_t ep = 1;              // ranks that share out the experts; divides dp_shard x cp x tp
  bool gather_tokens = false;  // with ep: every rank sees all tokens, in place of an exchange with the experts' ranks
  modeling::OptimizerOptions optimizer;
  bool cpu_offload = false;  // shards, gradients and optimizer state stay on the host
  bool activation_checkpointing = false;
  // What stays on the device between the micro-batches of a call (residency.hpp); absent: as much as its memory allows.
  std::optional<bool> reshard_after_forward, defer_grad_sync;
  modeling::ReplaySource router_replay = modeling::ReplaySource::none;  // only with experts
};

// `world`: ranks of the run. Throws sdk::Error or modeling::Error: features that are not available, wrong values, sizes
// that do not fit the model or the world, an unreadable config.json.
Settings read_settings(const sdk::Config& config, int64_t world);

}  // namespace hexad::dtensor
