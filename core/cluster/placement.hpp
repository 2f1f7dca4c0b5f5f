// Which ranks train and which generate: the same ones (colocated), or the first and the last ones.
#pragma once
#include "core/config/typed/run_config.hpp"

namespace hexad::cluster {

struct RankRange {
  int first = 0, count = 0;

  int end() const { return first + count; }
  bool contains(int rank) const { return rank >= first && rank < end(); }
};

struct Placement {
  RankRange trainers, generators;
  int replica_size = 1;  // neighbouring generator ranks that serve the same requests together

  bool apart() const { return !generators.contains(trainers.first); }
  int world() const { return std::max(trainers.end(), generators.end()); }
  int replicas() const { return generators.count / replica_size; }
  int replica_of(int generator) const { return (generator - generators.first) / replica_size; }
  // The ranks that `rank` shares its plugins' world with: those that train together, or its replica.
  RankRange block_of(int rank) const;
};

// Why `ranks` processes of this machine cannot have what cluster.device names, in a build with CUDA or without, where
// CUDA finds so many GPUs; empty: they can.
std::string device_problem(const std::string& wanted, int64_t ranks, bool has_cuda, int64_t gpus);

// Of `world` ranks that all train and generate.
Placement colocated(int world, int replica_size = 1);
// As policy.generation.colocated says.
Placement placement_of(const config::RunConfig& run);

}  // namespace hexad::cluster
