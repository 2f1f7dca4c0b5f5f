// Checks each key of a configuration by itself.
#pragma once
#include <vector>

#include "core/config/check.hpp"
#include "core/config/node.hpp"

namespace hexad::config {

// Unknown keys, kinds of values, ranges, choices, mandatory values left open, features that are not available; and a
// notice for each accepted key that asks for something.
std::vector<Problem> check_keys(const Node& root);

}  // namespace hexad::config
