// Which algorithm a configuration is of: its block names it, as NeMo-RL's scripts do (run_grpo, run_sft, run_dpo,
// run_rm).
#pragma once
#include <string>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::config {

enum class Algorithm { grpo, sft, dpo, rm };

// The block's key: "grpo", "sft", "dpo", "rm".
const char* name_of(Algorithm algorithm);

// The blocks that are there and not null, in the order above.
std::vector<Algorithm> algorithm_blocks(const yaml::Node& root);
// The one block's; grpo where there is none. Several are a fault that the rules report.
Algorithm algorithm_of(const yaml::Node& root);

// What loss_fn.plugin is where the configuration does not say.
const char* default_loss(Algorithm algorithm);
// What policy.generation.backend is where it does not.
inline constexpr const char* kDefaultGenerator = "native";
// True if training examples are pairs of a chosen and a rejected conversation.
bool has_pairs(Algorithm algorithm);

}  // namespace hexad::config
