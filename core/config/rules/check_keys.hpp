// Checks each key of a configuration, and each value, by itself.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/problem.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config {

// Unknown keys, kinds of values, ranges, choices, mandatory values left open, features that are not available; and a
// notice for each accepted key that asks for something. Sections that are `dormant` (paths) may ask for anything of the
// right kind. `advice` is what an unknown key without a likely meaning is told.
std::vector<Problem> check_keys(const yaml::Node& root, const Schema& schema, const std::vector<std::string>& dormant,
                                const std::string& advice);

// What is wrong with the value (kind, range, choice, a feature that is not available), or nothing. A section that is
// not read (`dormant`) may ask for features that are not available.
std::optional<std::string> value_problem(const Key& key, const yaml::Node& value, bool dormant = false);

// True if the value is of one of the kinds; a whole number counts as an integer, an integer as a number.
bool is_kind(const yaml::Node& value, Kinds kinds);

// The kinds as text: "an integer or null".
std::string kinds_text(Kinds kinds);

// The range and choices as text, "" if there are none: "at least 1", "one of k1, k2, k3".
std::string range_text(const Key& key);

}  // namespace hexad::config
