// This rank's process groups: one c10d group an axis, made once, all ranks in the same order.
#pragma once
#include <hexad/services.hpp>

#include "lib/model/parallel_grid.hpp"
#include "modeling/parallel/group.hpp"
#include "plugins/megatron/settings/settings.hpp"

namespace hexad::megatron {

struct Groups {
  modeling::Group world, tp, cp, pp, dp_cp;
  modeling::Group cp_inner, cp_outer;  // of cp, for a2a+p2p attention; one rank without it
  modeling::Group embedding;           // first and last stage; one rank elsewhere
  modeling::Group equal_heads;         // tensor-parallel ranks with the same key/value heads
  modeling::Group tp_ep;               // ranks that share all experts: expert tensor x expert parallel
  modeling::Group edp;                 // ranks with the same experts
  // With several instances of the distributed optimizer: the part of dp_cp (of edp) that one is shared over, and the
  // ranks that own the same in each. With one: dp_cp (edp) and one rank.
  modeling::Group dp_cp_part, dp_cp_replicas, edp_part, edp_replicas;
  // Of models with experts alone: ranks that share a micro-batch's tokens, and all that have tokens of the same layers.
  modeling::Group tp_cp, tp_dp_cp;
  modeling::Group dp;  // of router replay alone: ranks with the same layers and other micro-batches
  model::RankCoordinates at;
  int64_t rank = 0;  // in the world
};

// Collective over the world.
Groups make_groups(const sdk::Call& call, const model::ParallelGrid& grid, const Settings& settings);

}  // namespace hexad::megatron
