// What `hexad plugin list`, `info` and `new` do.
#pragma once
#include <filesystem>
#include <ostream>
#include <string>

#include "core/manifest/discovery.hpp"
#include "core/manifest/options.hpp"

namespace hexad::plugin {

// "ok", "shadowed", "refused" or "not built", and why; no code is loaded.
struct Status {
  std::string state;
  std::string reason;
};
Status status_of(const Candidate& candidate, const Options& options);

// `plugin list`: what is found, shadowed and refused, and why. No code is loaded. Prints every candidate of the search
// path, then the folders. As JSON: {"plugins": [...], "searched": [...]}. Returns 0; plugins that are refused, or not
// built ("not built: make build"), are listed, not an error.
int list_plugins(const Options& options, bool json, std::ostream& out);

// `plugin info`. Prints all that is known of each plugin with this name (of any kind), or of a path, and then
// its keys, a line each (config/reference.hpp); as JSON a list with one object a plugin, whose "keys" is a list
// (config::key_json). Throws Error(plugin) if there is none.
int plugin_info(const Options& options, const std::string& name, bool json, std::ostream& out);

// `plugin new`: a folder with a plugin that compiles, from the SDK's templates.
struct NewPlugin {
  std::string kind;            // a folder of PREFIX/share/hexad/template: loss_c, loss_cpp, generator ...
  std::string name;            // valid_plugin_name
  std::filesystem::path into;  // existing folder in which the folder `name` is made
};

// Copies the files that every template shares and those of `kind` into `into`/`name`: @NAME@ in text and file names
// becomes the name, and the suffix .in goes. Prints the next commands with this installation's SDK; with `json`, one
// object {"folder", "files", "sdk"}. `prefix` holds share/hexad/template and lib/cmake/HexadSDK: an installation or a
// build tree. Returns 0. Throws Error(config) for a wrong kind or name, a folder that exists or cannot be written, or a
// prefix without templates.
int new_plugin(const std::filesystem::path& prefix, const NewPlugin& wanted, bool json, std::ostream& out);

}  // namespace hexad::plugin
