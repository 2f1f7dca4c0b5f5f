// hexad plugin replay NAME|FILE.so RECORDING...
#include <iostream>

#include "app/commands.hpp"
#include "app/plugin_keys.hpp"
#include "app/replay.hpp"

namespace hexad::cli {
namespace {

struct ReplayArguments {
  std::string name;
  std::vector<std::string> files, paths, keys;
  bool json = false;
};

}  // namespace

void add_plugin_replay(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command =
      app.add_subcommand("replay", "Put recorded calls of a loss (plugins.record_dir) to a loss plugin");
  command->add_option("PLUGIN", arguments->name, "Name of a loss plugin, or its .so or manifest")->required();
  command->add_option("RECORDING", arguments->files, "Files of plugins.record_dir")->required();
  command->add_option("--set", arguments->keys, "KEY=VALUE of its plugin_config")->allow_extra_args(false);
  command->add_option("--path", arguments->paths, "Directory to search first, as plugins.paths does")
      ->allow_extra_args(false);
  command->add_flag("--json", arguments->json, "One JSON object a file");
  command->callback([arguments, &exit_code] {
    plugin::Options options;
    options.paths.assign(arguments->paths.begin(), arguments->paths.end());
    nlohmann::ordered_json config = nlohmann::ordered_json::object();
    for (const std::string& key : arguments->keys) set_plugin_key(config, key);
    const std::vector<std::filesystem::path> files(arguments->files.begin(), arguments->files.end());
    exit_code = plugin::replay_calls(options, arguments->name, files, config, arguments->json, std::cout);
  });
}

}  // namespace hexad::cli
