// The steps of loading a configuration. Source of the rules: NeMo-RL's utils/config.py, OmegaConf 2.3, Hydra 1.3.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config/declaration/selection.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"
#include "lib/yaml/override.hpp"

namespace hexad::config {

// Reads a file and, before it, the files that its top-level `defaults` names (relative to the file that names them),
// depth first, the later over the earlier and the file itself over all. A top-level section with `_override_: true`
// replaces what the parents say instead of merging with it. A name
// without folder and extension that is no file is that of a configuration that came with the program
// (lib/shipped). `name@_here_`, as in ROLL's files, is name.yaml. Throws
// Error(config): unreadable file, a file that inherits from itself. `absent_parent` (config/compat.hpp) stands in for a
// `name@_here_` that is not there, `look` is shown the file itself; null: nothing does, nobody is.
using AbsentParent = std::optional<yaml::Node> (*)(const std::string& name);
using Look = void (*)(const yaml::Node& file);
yaml::Node read_with_parents(const std::filesystem::path& path, AbsentParent absent_parent = nullptr,
                             Look look = nullptr);

// As Hydra applies an override to a config in struct mode: a.b=1 sets a key that exists or that the schema takes (null:
// as Hydra, there is none), +a.b=1 adds one, ++a.b=1 does either, ~a.b removes. A map is merged into a map, anything
// else replaces. List elements can be set, not added or removed. Throws Error(config).
void apply_override(yaml::Node& root, const yaml::Override& override, const Schema* schema);

// Texts of NeMo-RL's that mean another one here (engines that do not run here, names of older versions): puts those in
// effect in their place, and says so in a notice each, but not of a plugin that is not used.
std::vector<Problem> replace_synonyms(yaml::Node& root, const Schema& schema, const Selection& selection);

}  // namespace hexad::config
