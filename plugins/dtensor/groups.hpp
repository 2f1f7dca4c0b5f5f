// This rank's process groups: NeMo-RL's device mesh dp_replicate x dp_shard x cp x tp, neighbours in tp side by side.
#pragma once
#include <hexad/services.hpp>

#include "modeling/parallel/group.hpp"
#include "plugins/dtensor/settings.hpp"

namespace hexad::dtensor {

struct Groups {
  modeling::Group world, tp, cp;
  modeling::Group shards;       // dp_shard x cp: every weight is cut over them (FSDP)
  modeling::Group replicas;     // dp_replicate: ranks with the same shards (HSDP)
  modeling::Group equal_heads;  // tensor-parallel ranks with the same key/value heads
  int64_t dp_rank = 0, dp_size = 1;
};

// Collective over the world.
Groups make_groups(const sdk::Call& call, const Settings& settings);

}  // namespace hexad::dtensor
