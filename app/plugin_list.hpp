// `hexad plugin list` and `hexad plugin info NAME`: what is found, shadowed and refused, and why. No code is loaded.
#pragma once
#include <ostream>
#include <string>

#include "core/manifest/options.hpp"

namespace hexad::plugin {

// Prints every candidate of the search path, then the folders. As JSON: {"plugins": [...], "searched": [...]}.
// Returns 0; plugins that are refused, or not built ("not built: make build"), are listed, not an error.
int list_plugins(const Options& options, bool json, std::ostream& out);

// Prints all that is known of each plugin with this name (of any kind), or of an absolute path, and then its keys, a
// line each (config/key_table.hpp); as JSON a list with one object a plugin, whose "keys" is a list (config::key_json).
// Throws Error(plugin) if there is none.
int plugin_info(const Options& options, const std::string& name, bool json, std::ostream& out);

}  // namespace hexad::plugin
