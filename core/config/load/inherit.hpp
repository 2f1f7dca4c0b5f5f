// `defaults:` inheritance between files.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::config {

// Reads a file and, before it, the files that its top-level `defaults` names (relative to the file that names them),
// depth first, the later over the earlier and the file itself over all. A top-level section with `_override_: true`
// replaces what the parents say instead of merging with it. `name@_here_`, as in ROLL's files, is name.yaml. Throws Error(config): unreadable file, a file that
// inherits from itself.
// `absent_parent` (config/compat.hpp) stands in for a `name@_here_` that is not there; null: nothing does.
using AbsentParent = std::optional<yaml::Node> (*)(const std::string& name);
yaml::Node read_with_parents(const std::filesystem::path& path, AbsentParent absent_parent = nullptr);

}  // namespace hexad::config
