// One YAML file as a tree, before inheritance and interpolation.
#pragma once
#include <filesystem>
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// Reads one document whose root is a map (empty: no keys). Duplicate keys and anchors, keys that are not text, several
// documents, aliases without an anchor and malformed `${}` are errors that name file:line:column. `<<` merges are
// applied.
Node read_file(const std::filesystem::path& path);

// The same for text; `name` stands for the file in locations.
Node read_text(const std::string& text, const std::string& name);

// What YAML 1.1 forbids and yaml-cpp lets pass, which the two above ask first. Throws Error(config) with
// file:line:column for a tab outside quotations, comments and block texts, a quotation that does not end, a missing
// element in a flow list, and anywhere for control characters and bytes that are not UTF-8.
void check_strict_yaml(const std::string& text, const std::string& name);

}  // namespace hexad::yaml
