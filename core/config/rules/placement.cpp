// Which ranks generate and which train (NeMo-RL's grpo.py setup), and what asynchronous GRPO asks of both.
#include "core/config/rules/rules.hpp"

namespace hexad::config {
namespace {

const std::string kAt = "policy.generation.colocated.";
const std::string kDevices = kAt + "resources.gpus_per_node", kNodes = kAt + "resources.num_nodes";

void check_one_node(RuleContext& c, int64_t cluster_devices) {
  const std::optional<int64_t> devices = c.integer(kDevices), nodes = c.integer(kNodes);
  if (nodes && *nodes != 1)
    c.error(kNodes,
            fmt::format("got {}, wanted null or 1: the cluster has one node, and "
                        "policy.generation.colocated.resources.gpus_per_node says how many of its ranks generate",
                        *nodes));
  if (!devices) {
    c.error(kDevices, fmt::format("is missing: with policy.generation.colocated.enabled: false say how many of the {} "
                                  "ranks (cluster.gpus_per_node) generate{}",
                                  cluster_devices, cluster_devices > 1 ? "; nearest: 1" : ""));
    return;
  }
  if (*devices < cluster_devices) return;
  const std::string mend = cluster_devices > 1
                               ? fmt::format("; nearest: {}", cluster_devices - 1)
                               : fmt::format("; set cluster.gpus_per_node to at least {}", *devices + 1);
  c.error(kDevices, fmt::format("got {}, and of the {} rank{} of cluster.gpus_per_node at least one must be left to "
                                "train{}",
                                *devices, cluster_devices, cluster_devices == 1 ? "" : "s", mend));
}

void check_several_nodes(RuleContext& c, int64_t cluster_devices, int64_t cluster_nodes) {
  const std::optional<int64_t> devices = c.integer(kDevices), nodes = c.integer(kNodes);
  if (devices && *devices != cluster_devices)
    c.error(kDevices, fmt::format("got {}, wanted whole nodes of a cluster of {}: cluster.gpus_per_node is {}",
                                  *devices, cluster_nodes, cluster_devices));
  if (!nodes)
    c.error(kNodes, fmt::format("is missing: with policy.generation.colocated.enabled: false say how many of the {} "
                                "nodes generate; nearest: 1",
                                cluster_nodes));
  else if (*nodes >= cluster_nodes)
    c.error(kNodes, fmt::format("got {}, and of the {} nodes at least one must be left to train; nearest: {}", *nodes,
                                cluster_nodes, cluster_nodes - 1));
}

void check_resources(RuleContext& c) {
  const yaml::Node* colocated = c.value(kAt + "enabled");
  if (!colocated || !colocated->is_bool() || colocated->as_bool()) return;
  const std::optional<int64_t> devices = c.integer("cluster.gpus_per_node"), nodes = c.integer("cluster.num_nodes");
  if (!devices || !nodes || *devices < 1 || *nodes < 1) return;
  *nodes == 1 ? check_one_node(c, *devices) : check_several_nodes(c, *devices, *nodes);
  if (c.integer(kAt + "sleep_level").value_or(1) == 2)
    c.notice(kAt + "sleep_level", "no effect: a generator on ranks of its own never sleeps");
}

// NeMo-RL's conditions, in its order.
void check_async(RuleContext& c) {
  const std::string at = "grpo.async_grpo.";
  if (!c.flag(at + "enabled")) {
    for (const char* key : {"in_flight_weight_updates", "recompute_kv_cache_after_weight_updates"})
      if (c.flag(at + key)) c.notice(at + key, "no effect: grpo.async_grpo.enabled is false");
    return;
  }
  if (c.generation_ranks() == 0)
    c.error(at + "enabled",
            "needs generation on ranks of its own, which work while others train: set "
            "policy.generation.colocated.enabled to false and policy.generation.colocated.resources.gpus_per_node");
  if (!c.flag("loss_fn.use_importance_sampling_correction"))
    c.error(at + "enabled",
            "needs loss_fn.use_importance_sampling_correction: true, for samples come from weights of earlier steps, "
            "and without it the gradient is that of another objective");
  if (c.flag(at + "recompute_kv_cache_after_weight_updates") && !c.flag(at + "in_flight_weight_updates"))
    c.notice(at + "recompute_kv_cache_after_weight_updates",
             "no effect without in_flight_weight_updates: no request runs while weights are updated");
}

}  // namespace

void check_placement_rules(RuleContext& c) {
  check_resources(c);
  check_async(c);
}

}  // namespace hexad::config
