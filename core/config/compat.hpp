// Configurations of other systems, as core meets them. The program hands in how each is read (compat/).
#pragma once
#include <optional>
#include <span>
#include <string>
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

struct Compat {
  std::vector<OtherForm> forms = {};
  std::span<const OtherName> names = {};
  // A file that `defaults` names (`name@_here_`) and that is not there; nothing if the name is not known. Null: none
  // is.
  std::optional<yaml::Node> (*absent_parent)(const std::string& name) = nullptr;
  // Throws Error(config) where nothing of the named file can run here, before its parents are read. Null: does nothing.
  void (*look)(const yaml::Node& file) = nullptr;
};

}  // namespace hexad::config
