// Checks one value against its key.
#pragma once
#include <optional>
#include <string>

#include "lib/yaml/node.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// What is wrong with the value (kind, range, choice, a feature that is not available), or nothing. A section that is not
// read (`dormant`) may ask for features that are not available.
std::optional<std::string> value_problem(const Key& key, const yaml::Node& value, bool dormant = false);

// True if the value is of one of the kinds; a whole number counts as an integer, an integer as a number.
bool is_kind(const yaml::Node& value, Kinds kinds);

// The kinds as text: "an integer or null".
std::string kinds_text(Kinds kinds);

// The range and choices as text, "" if there are none: "at least 1", "one of k1, k2, k3".
std::string range_text(const Key& key);

}  // namespace hexad::config
