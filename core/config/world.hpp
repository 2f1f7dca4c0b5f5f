// The ranks of a run, as its configuration counts them.
#pragma once
#include <cstdint>
#include <optional>

#include "lib/yaml/node.hpp"

namespace hexad::config {

// A number of ranks above it is not looked at.
constexpr int64_t kMostRanks = 1'000'000;

// Nothing where a size is no such number, or leaves nobody. Absent keys count as their defaults.
struct World {
  std::optional<int64_t> ranks, nodes, ranks_per_node;
  std::optional<int64_t>
      generate_ranks;  // the last ranks, which only generate; 0: generation is colocated, or there is none
  std::optional<int64_t> train_ranks;  // the others
};
World world_of(const yaml::Node& root);

}  // namespace hexad::config
