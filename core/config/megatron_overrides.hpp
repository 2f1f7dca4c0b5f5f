// NeMo-RL's policy.megatron_cfg.model_overrides.
#pragma once
#include "core/config/node.hpp"

namespace hexad::config {

// Moves each override that is a key of policy.megatron_cfg, and that is not written there, to its place there. What is
// left in model_overrides is a conflict or no key at all; the rules report it.
void lift_model_overrides(Node& root);

}  // namespace hexad::config
