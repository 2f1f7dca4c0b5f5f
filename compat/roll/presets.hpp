// The DeepSpeed presets that ROLL's examples inherit from (`../config/deepspeed_zero3@_here_`).
#pragma once
#include <optional>
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::config::roll {

// The map {deepspeed_zero3: ...} for the last part of the name, or nothing if it is none of them.
std::optional<yaml::Node> deepspeed_preset(const std::string& name);

}  // namespace hexad::config::roll
