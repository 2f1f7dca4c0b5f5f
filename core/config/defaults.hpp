// The schema's defaults for keys that a configuration leaves out.
#pragma once
#include "core/config/node.hpp"

namespace hexad::config {

// Adds the default of every effective key that is absent, before interpolations are resolved (defaults hold some).
// A section that is null, or a reference to another, stays as it is. Of the algorithms' blocks the configuration's own is
// completed, and it and `data` only where one of them is present: without them the configuration does not train, and
// score and generate use the rest.
void fill_defaults(Node& root);

// True if the configuration is one to train with.
bool trains(const Node& root);

// A key's default as written in the schema; null if it has none.
Node default_value(const std::string& default_yaml);

}  // namespace hexad::config
