// ROLL's device_mapping.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::config::roll {

// The device ids of a list, or of Python text: `list(range(0,8))`, `[0, 1]`, and sums of those. Nothing if it is
// neither, names a device twice, or names more than a million.
std::optional<std::vector<int64_t>> device_mapping(const yaml::Node& value);

}  // namespace hexad::config::roll
