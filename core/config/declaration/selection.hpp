// Which plugins a configuration chooses, and which others have a section in it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/config/compat.hpp"
#include "core/config/declaration/catalog.hpp"
#include "core/config/problem.hpp"

namespace hexad::config {

class CheckLibrary;

// A plugin that the run uses.
struct Chosen {
  plugin::Kind kind = plugin::Kind::backend;
  std::string block;                     // that holds its keys: "policy"
  std::string name;                      // as written: a name, another name, or a path; empty: none is chosen
  const Installed* installed = nullptr;  // null: not found
  std::shared_ptr<CheckLibrary> library = nullptr;  // null: it has none, or it is not started

  const Declaration* declaration() const { return installed ? installed->declaration() : nullptr; }
  // The plugin's own name; that of the file behind a path that is not there.
  std::string plugin() const;
};

// A plugin that the run does not use, whose section or keys stand in the file all the same.
struct Dormant {
  const Declaration* declaration = nullptr;
  std::string block;
  std::vector<std::string> present;  // names of the block that are its own
  std::vector<std::string> taken;    // names that it declares too, and that are a chosen plugin's here
};

struct Selection {
  std::shared_ptr<Catalog> catalog;
  Chosen backend, generator, loss;
  std::vector<Chosen> environments;
  std::vector<Dormant> dormant;
  std::vector<Problem> problems;           // two that are chosen at once, none, one that is not installed
  std::span<const OtherSection> sections;  // of other systems
  bool is_engine_replaced = false;  // policy.generation.backend names one of theirs, and the default is chosen for it

  std::vector<const Chosen*> all() const;
  // True for a section or key that a chosen plugin of this block owns.
  bool is_chosens(const std::string& block, const std::string& name) const;
};

// The block that holds the keys of a plugin; empty for environments, whose blocks have the user's names.
std::string usual_block(plugin::Kind kind, const std::string& plugin);

// The key that names a plugin: policy.backend, policy.generation.backend, loss_fn.plugin, and of an environment
// `plugin` in its block; without it the block's own name, or its `type`, is that of an installed one.
std::string choosing_key(plugin::Kind kind, const std::string& block);

// Reads the keys that choose plugins (policy.backend and the switches that manifests declare,
// policy.generation.backend, loss_fn.plugin, env.<name>.plugin or else `type` or the name), interpolations included.
Selection select_plugins(const yaml::Node& root, std::shared_ptr<Catalog> catalog, const Compat& compat = {});

// Starts the check libraries of the chosen plugins, where plugins.allow_insecure_dirs or their folders permit it.
void open_check_libraries(const yaml::Node& root, Selection& selection);

}  // namespace hexad::config
