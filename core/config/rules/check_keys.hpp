// Checks each key of a configuration by itself.
#pragma once
#include <vector>

#include "core/config/check.hpp"
#include "lib/yaml/node.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// Unknown keys, kinds of values, ranges, choices, mandatory values left open, features that are not available; and a
// notice for each accepted key that asks for something. Sections that are `dormant` (paths) may ask for anything of the
// right kind. `advice` is what an unknown key without a likely meaning is told.
std::vector<Problem> check_keys(const yaml::Node& root, const Schema& schema, const std::vector<std::string>& dormant,
                                const std::string& advice);

}  // namespace hexad::config
