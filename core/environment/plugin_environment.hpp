// An environment that is a plugin: `env.<name>.plugin` names it, `env.<name>.plugin_config` holds its own keys.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "core/environment/environment.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::environment {

// `section` is env.<name>. Loads and creates the plugin in this process. `interrupted` > 0: a call that goes on a few
// seconds later is cancelled (Interrupted). Throws Error(plugin), or Error(config) for a `plugin` that is no text and
// for keys that the plugin does not read.
std::unique_ptr<Environment> make_plugin_environment(const std::string& name, const nlohmann::ordered_json& section,
                                                     plugin::Registry& registry, plugin::Locate locate = {},
                                                     const std::atomic<int>* interrupted = nullptr);

}  // namespace hexad::environment
