// The engine's keys merged with those of the plugins that take part in a configuration.
#pragma once
#include "core/config/declaration/selection.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// A declared key under its full path: `block` before it, and before what its default refers to.
Key placed_key(const Key& declared, const std::string& block);

// Core's keys and the sections of other systems, with the keys of every plugin that is chosen or dormant. Two chosen
// plugins that own one key are a problem that names both manifests.
Schema run_schema(Selection& selection);

// The same with the keys of every installed plugin: what an override on the command line may add.
Schema known_schema(Selection& selection);

}  // namespace hexad::config
