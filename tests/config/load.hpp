// NeMo-RL's loader as a whole: what the engine's own takes apart, to add defaults before interpolations.
#pragma once
#include "core/config/load/load.hpp"
#include "lib/yaml/interpolation.hpp"

namespace hexad::config {

// A file, its parents and the overrides, with every interpolation resolved.
inline yaml::Node load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {}) {
  yaml::Node root = read_with_parents(path);
  for (const std::string& text : overrides) apply_override(root, yaml::parse_override(text), nullptr);
  resolve_interpolations(root);
  return root;
}

}  // namespace hexad::config
