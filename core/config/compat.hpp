// Configurations of other systems, as core meets them. The program hands in how each is read (compat/).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/problem.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config {

// What a file of another form comes to. `problems` name its own keys and places: an error for what cannot run here, a
// notice for what means something else or nothing.
struct Translation {
  yaml::Node root;
  std::vector<Problem> problems = {};
};

// A form of file that is not ours.
struct OtherForm {
  bool (*is_it)(const yaml::Node& file);
  bool (*is_own_key)(const std::string& path);  // an override of the key is of the file; others are of what it comes to
  const Schema& (*keys)();                      // of such overrides; null: ours
  // `file` holds interpolations as text; overrides of its own keys are applied already. Values keep their places.
  Translation (*translate)(yaml::Node file);
};

// A section of another system's files whose plugin may not be installed here.
struct OtherSection {
  std::string_view block;    // that it stands in
  std::string_view section;  // its name there
  std::string_view key;      // its switch; empty: it has none
  std::string_view plugin;   // that owns it: its name or one of its other names
};

struct Compat {
  std::vector<OtherForm> forms = {};
  std::span<const OtherName> names = {};
  std::span<const OtherSection> sections = {};
  // Engines that `policy.generation.backend` may name; while no plugin serves one, the default generator does.
  std::span<const std::string_view> engines = {};
  // A file that `defaults` names (`name@_here_`) and that is not there; nothing if the name is not known. Null: none
  // is.
  std::optional<yaml::Node> (*absent_parent)(const std::string& name) = nullptr;
  // Throws Error(config) where nothing of the named file can run here, before its parents are read. Null: does nothing.
  void (*look)(const yaml::Node& file) = nullptr;
};

}  // namespace hexad::config
