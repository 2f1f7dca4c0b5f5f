// The keys of a plugin as `hexad plugin info` prints them.
#pragma once
#include <string>
#include <vector>

#include "core/config/schema/schema.hpp"

namespace hexad::config {

// A line for each key: path, type, default, meaning, in columns that are as wide as they must be. No line is longer
// than 120 characters: what a column has no room for goes on below, and what is after it too.
std::string key_table(const std::vector<Key>& keys);

}  // namespace hexad::config
