// Applies overrides to a composed tree, as Hydra does to a config in struct mode.
#pragma once
#include "core/config/load.hpp"
#include "core/config/override_grammar.hpp"

namespace hexad::config {

// a.b=1 sets a key that exists (or is known), +a.b=1 adds one, ++a.b=1 does either, ~a.b removes. A map is merged
// into a map, anything else replaces. List elements can be set, not added or removed. Throws Error(config).
void apply_override(Node& root, const Override& override, const KnownKeys& known);

}  // namespace hexad::config
