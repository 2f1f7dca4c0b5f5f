#include "core/cluster/placement.hpp"

namespace hexad::cluster {

RankRange Placement::block_of(int rank) const {
  if (!apart() || trainers.contains(rank)) return trainers;
  return {rank - (rank - generators.first) % replica_size, replica_size};
}

Placement colocated(int world, int replica_size) { return {{0, world}, {0, world}, replica_size}; }

Placement placement_of(const config::RunConfig& run) {
  const int world = static_cast<int>(run.cluster.gpus_per_node * run.cluster.num_nodes);
  const int apart = static_cast<int>(config::generation_ranks(run));
  Placement placement = colocated(world, static_cast<int>(run.policy.generation.replica_size));
  if (apart > 0) placement.trainers = {0, world - apart}, placement.generators = {world - apart, apart};
  return placement;
}

}  // namespace hexad::cluster
