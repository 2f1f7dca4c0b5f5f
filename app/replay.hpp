// `hexad plugin replay`: recorded calls of a loss, put to another loss or to a changed one.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "core/manifest/options.hpp"

namespace hexad::plugin {

// Loads the loss `name` under the recorded loss_fn section (its plugin_config only if the plugin is the one that was
// recorded), with `plugin_config` over it, and calls it on every file. Prints loss, metrics and how far loss and
// gradients are from the recorded ones; one JSON object a file with `json`. Returns 0.
int replay_calls(const Options& options, const std::string& name, const std::vector<std::filesystem::path>& files,
                 const nlohmann::ordered_json& plugin_config, bool json, std::ostream& out);

}  // namespace hexad::plugin
