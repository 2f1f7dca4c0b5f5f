// env.<name> as an environment, of whatever kind its keys make it.
#pragma once
#include <atomic>

#include "core/config/declaration/catalog.hpp"
#include "core/environment/environment.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::environment {

// What environments are made with. Borrowed as long as they live.
struct Services {
  plugin::Registry& plugins;
  plugin::Locate locate = {};
  const std::atomic<int>* interrupted = nullptr;  // > 0: slow rewards are given up; null: never
  int64_t num_steps = 0;                          // of the run, which programs are told; 0: not known
};

// By the key that `section` has: `plugin`: a plugin; `command`: a program; `python`: a function of a Python file;
// `rewards`: a weighted sum of parts; else, of the section's name or of `type`, the environment plugin that is
// installed, whose manifest declares the section's keys, or the built-in one. Throws Error.
std::unique_ptr<Environment> make(const std::string& name, const nlohmann::ordered_json& section,
                                  const Services& services);

// Throws what make() would throw about the keys, and about a program, or a plugin of a part, that is not there. Starts
// nothing, loads nothing, and leaves alone what a plugin that `plugin` names is given, and the plugin of the section
// itself.
void check_section(const std::string& name, const nlohmann::ordered_json& section, const config::Catalog& catalog);

// The environment plugins that are installed.
std::vector<std::string> plugin_names(const config::Catalog& catalog);

}  // namespace hexad::environment
