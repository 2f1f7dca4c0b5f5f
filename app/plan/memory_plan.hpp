// What a rank holds, phase by phase, by the formulas that the plugins of a run state in their manifests (sdk/CONFIG.md,
// "Memory"). No plugin's code runs, and nothing is known of one that states nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/check.hpp"

namespace hexad::plan {

struct Part {
  std::string name;  // "parameters", "activations", "kv_cache"
  int64_t bytes = 0;

  bool operator==(const Part&) const = default;
};

// A stretch of a step, on the rank that holds most in it.
struct Phase {
  std::string name;  // "training", "log-probs", "refit", "generation"
  std::vector<Part> parts;
  std::vector<std::string> unknown;  // a sentence for each part that nobody states: the sum is the least then

  int64_t sum() const;
};

struct MemoryPlan {
  std::vector<Phase> phases;  // those that are run
  Phase held;                 // what a rank that trains holds of weights, gradients and optimizer states

  // The phase with the largest sum; null where nothing at all is known.
  const Phase* worst() const;
};

// `room`: bytes that a rank has, where that is known: a cache that takes a share of what is free is cut to it.
MemoryPlan memory_plan(const config::Loaded& loaded, std::optional<int64_t> room = {});

// The configuration, with GPUs or CPUs in the place of cluster.device auto: formulas differ.
config::Loaded on_device(const config::Loaded& loaded, bool on_cards);

// A resolved configuration as memory_plan() reads it. No check library is started.
config::Loaded loaded_again(const yaml::Node& root);

}  // namespace hexad::plan
