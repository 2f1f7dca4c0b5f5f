// KEY=VALUE, as settings of a plugin are written on a command line and in a manifest.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace hexad::plugin {

// Sets a dotted key of a plugin_config; a value that is no JSON is a text. False if this is no assignment.
bool assign(nlohmann::ordered_json& config, const std::string& assignment);

}  // namespace hexad::plugin
