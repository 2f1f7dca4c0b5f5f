// This rank's process groups: NeMo-RL's device mesh dp_replicate x dp_shard x cp x tp, neighbours in tp side by side.
// For experts that are shared out, the ranks of dp_shard x cp x tp are seen as expert_shards x ep (torchtitan's efsdp x
// ep).
#pragma once
#include <hexad/services.hpp>

#include "modeling/parallel/group.hpp"
#include "plugins/dtensor/settings.hpp"

namespace hexad::dtensor {

struct Groups {
  modeling::Group world, tp, cp;
  modeling::Group cp_inner, cp_outer;  // of cp, for a2a+p2p attention; one rank without it
  modeling::Group shards;              // dp_shard x cp: every weight is cut over them (FSDP)
  modeling::Group replicas;            // dp_replicate: ranks with the same shards (HSDP)
  modeling::Group equal_heads;         // tensor-parallel ranks with the same key/value heads
  modeling::Group ep;                  // ranks that share out the experts of every layer
  modeling::Group expert_shards;       // with ep: the ranks with the same experts, which are cut over them
  // Of router replay alone: ranks with parts of one micro-batch, and ranks with other micro-batches.
  modeling::Group sharing, data_parallel;
  int64_t dp_rank = 0, dp_size = 1;
};

// Collective over the world.
Groups make_groups(const sdk::Call& call, const Settings& settings);

}  // namespace hexad::dtensor
