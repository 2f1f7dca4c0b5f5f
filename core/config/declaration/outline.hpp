// What the engine has to know of every plugin that is installed, and not only of those that a run uses: read from a
// manifest without parsing the rest, which is most of it.
#pragma once
#include <string>
#include <vector>

#include "core/config/declaration/declaration.hpp"

namespace hexad::config {

// A key whose value chooses the plugin.
struct SelectingKey {
  std::string path;         // relative to the block
  yaml::Node wanted;        // the value that chooses it
  bool by_default = false;  // an absent key has that value
};

struct Outline {
  std::vector<std::string> named;  // other names of the plugin
  std::vector<std::string> owned;  // names of its block that are its own: the first names of its keys' paths
  std::vector<std::string> facts;  // names of the facts that it gives
  std::vector<SelectingKey> select;
  Declaration selecting;  // those keys and the sections above them alone
};

// Throws Error(plugin) as read_declaration() does, of the parts that it reads.
Outline read_outline(const plugin::Manifest& manifest, const std::string& where);

// The keys alone, and how they choose the plugin: all that matters where it is not chosen. Throws as
// read_declaration().
std::optional<Declaration> read_keys(const plugin::Manifest& manifest, const std::string& where);

}  // namespace hexad::config
