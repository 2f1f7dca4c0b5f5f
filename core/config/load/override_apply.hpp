// Applies overrides to a composed tree, as Hydra does to a config in struct mode.
#pragma once
#include "core/config/load/load.hpp"
#include "lib/yaml/override/grammar.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// a.b=1 sets a key that exists or that the schema takes (null: as Hydra, there is none), +a.b=1 adds one, ++a.b=1 does
// either, ~a.b removes. A map is merged into a map, anything else replaces. List elements can be set, not added or
// removed. Throws Error(config).
void apply_override(yaml::Node& root, const yaml::Override& override, const Schema* schema);

}  // namespace hexad::config
