// What a plugin declares of its configuration, for people: docs/plugins/NAME.md and `hexad plugin info NAME`.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/declaration/catalog.hpp"

namespace hexad::config {

// The keys under their full paths: below the block that chooses the plugin ("policy", "dpo", "env.<name>"). What a
// default names with `first_of` counts from that block.
std::vector<Key> plugin_keys(const Declaration& declaration);

// Where they stand, for an index: the sections below the block ("policy.NAME_cfg"), or the block itself.
std::vector<std::string> plugin_sections(const Declaration& declaration);

// A key as `hexad plugin info --json` lists it: {"key", "type", "default", "meaning", "status", ...}. A default that is
// no literal is {"first_of", "else"}, {"model"} or {"auto"}, as in keys.yaml; without "default" it has none.
nlohmann::ordered_json key_json(const Key& key);

// The page of a plugin that has a declaration: how it is chosen, a table for each section of its keys, facts and rules.
// It holds nothing that depends on the machine.
std::string plugin_reference_markdown(const Installed& plugin);

// The plugins of the engine's own folders that declare keys, by kind and name: those with a page in docs/plugins.
std::vector<const Installed*> plugins_with_pages(const Catalog& catalog);

}  // namespace hexad::config
