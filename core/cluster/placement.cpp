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

std::string device_problem(const std::string& wanted, int64_t ranks, bool has_cuda, int64_t gpus) {
  if (wanted == "cpu" || (has_cuda && gpus >= ranks)) return "";
  const bool none = !has_cuda || gpus == 0;
  if (wanted == "auto" && none) return "";
  if (!has_cuda)
    return fmt::format(
        "cluster.device is '{}', but this build has no CUDA. Build it with `make build PRESET=cuda`, or set "
        "cluster.device=cpu",
        wanted);
  if (none)
    return fmt::format(
        "cluster.device is '{}', but this machine has no GPU: CUDA finds none (see nvidia-smi and "
        "CUDA_VISIBLE_DEVICES). Set cluster.device=cpu to run without",
        wanted);
  return fmt::format(
      "cluster.device is '{}' and cluster.gpus_per_node {}, but CUDA finds {} GPU{} here. Set cluster.gpus_per_node to "
      "at most that, or cluster.device=cpu to use none{}",
      wanted, ranks, gpus, gpus == 1 ? "" : "s",
      gpus == 1 ? ". A launcher that shows each rank one GPU (srun --gpus-per-task) has to show all (--gpus-per-node)"
                : "");
}

}  // namespace hexad::cluster
