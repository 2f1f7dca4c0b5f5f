// env.<name> as an environment, of whatever kind its keys make it.
#pragma once
#include <atomic>

#include "core/environment/environment.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::environment {

// What environments are made with. Borrowed as long as they live.
struct Services {
  plugin::Registry& plugins;
  plugin::Locate locate = {};
  const std::atomic<int>* interrupted = nullptr;  // > 0: slow rewards are given up; null: never
};

// By the key that `section` has: `plugin`: a plugin; `command`: a program; `rewards`: a weighted sum of parts; else the
// built-in of that name, or of `type`. Throws Error.
std::unique_ptr<Environment> make(const std::string& name, const nlohmann::ordered_json& section,
                                  const Services& services);

// Throws what make() would throw about the keys, and about a program that is not there. Starts nothing, and leaves plugins
// alone.
void check_section(const std::string& name, const nlohmann::ordered_json& section);

}  // namespace hexad::environment
