// One YAML file as a tree, before inheritance and interpolation.
#pragma once
#include <filesystem>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// Reads one document whose root is a map (empty: no keys). Duplicate keys, keys that are not text, several documents,
// aliases without an anchor and malformed `${}` are errors that name file:line:column. `<<` merges are applied.
Node read_file(const std::filesystem::path& path);

// The same for text; `name` stands for the file in locations.
Node read_text(const std::string& text, const std::string& name);

}  // namespace hexad::yaml
