// NeMo-RL's configuration loader: YAML 1.1 as OmegaConf reads it, `defaults:` inheritance, Hydra's override grammar,
// `${}` interpolation. Source of the rules: NeMo-RL's utils/config.py, OmegaConf 2.3, Hydra 1.3.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/yaml/interpolation.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config {

// Reads a file, its parents and the overrides ("a.b=1", "+a.b=1", "++a.b=1", "~a.b") and resolves every interpolation.
// The root is a map. Text "???" that nothing filled stays as it is. Throws Error(config) with file, line and column.
yaml::Node load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

// The first half of load(), for whoever adds values before resolve_interpolations(): interpolations are left as text.
yaml::Node compose(const std::filesystem::path& path, const std::vector<std::string>& overrides);

}  // namespace hexad::config
