// `hexad plugin new KIND NAME`: a folder with a plugin that compiles, from the SDK's templates.
#pragma once
#include <filesystem>
#include <ostream>
#include <string>

namespace hexad::plugin {

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
