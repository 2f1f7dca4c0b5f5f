// An environment that is a plugin: `env.<name>.plugin` names it, `env.<name>.plugin_config` holds its own keys.
#pragma once
#include <memory>
#include <string>

#include "core/environment/environment.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::environment {

// `section` is env.<name>. Loads and creates the plugin in this process. Throws Error(plugin), or Error(config) for a
// `plugin` that is no text and for keys that the plugin does not read.
std::unique_ptr<Environment> make_plugin_environment(const std::string& name, const nlohmann::ordered_json& section,
                                                     plugin::Registry& registry, plugin::Locate locate = {});

}  // namespace hexad::environment
