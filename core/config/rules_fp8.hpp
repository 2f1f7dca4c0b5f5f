// FP8 training: fp8_cfg of a backend's section, for every backend that has it.
#pragma once
#include "core/config/rules.hpp"

namespace hexad::config {

// `section`: "policy.megatron_cfg".
void check_fp8_rules(RuleContext& c, const std::string& section);

}  // namespace hexad::config
