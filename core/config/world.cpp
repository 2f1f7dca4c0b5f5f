#include "core/config/world.hpp"

#include "core/config/rules/rules.hpp"

namespace hexad::config {
namespace {

std::optional<int64_t> all_ranks(const RuleContext& c) {
  const std::optional<int64_t> devices = c.integer("cluster.gpus_per_node"), nodes = c.integer("cluster.num_nodes");
  if (!devices || !nodes || *devices < 1 || *nodes < 1 || *devices > kMostRanks || *nodes > kMostRanks)
    return std::nullopt;
  return *devices * *nodes;
}

std::optional<int64_t> generate_ranks(const RuleContext& c) {
  if (c.algorithm() != Algorithm::grpo) return 0;
  const std::string at = "policy.generation.colocated.";
  const yaml::Node* colocated = c.value(at + "enabled");
  if (!colocated || !colocated->is_bool() || colocated->as_bool()) return 0;
  const int64_t nodes = c.integer("cluster.num_nodes").value_or(1);
  const std::optional<int64_t> devices = c.integer(at + "resources.gpus_per_node");
  if (nodes == 1) return devices;
  const std::optional<int64_t> own = c.integer(at + "resources.num_nodes");
  return own ? std::optional(*own * c.integer("cluster.gpus_per_node").value_or(1)) : std::nullopt;
}

}  // namespace

World world_of(const yaml::Node& root) {
  const RuleContext c(root);
  World world;
  world.ranks = all_ranks(c);
  world.nodes = c.integer("cluster.num_nodes");
  world.ranks_per_node = c.integer("cluster.gpus_per_node");
  world.generate_ranks = generate_ranks(c);
  const std::optional<int64_t> all = world.ranks, apart = world.generate_ranks;
  if (all && apart && *apart >= 0 && *apart < *all) world.train_ranks = *all - *apart;
  return world;
}

}  // namespace hexad::config
