// KEY=VALUE on the command line of `plugin verify` and `plugin replay`.
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace hexad::cli {

// Sets a dotted key of a plugin_config; a value that is no JSON is a text. Throws CLI::ValidationError for no
// assignment.
void set_plugin_key(nlohmann::ordered_json& config, const std::string& assignment);

}  // namespace hexad::cli
