// hexad plugin list|info NAME
#include <iostream>

#include "core/cli/commands.hpp"
#include "core/plugin/list.hpp"

namespace hexad::cli {
namespace {

struct PluginArguments {
  std::string name;
  std::vector<std::string> paths;
  bool json = false;

  plugin::Options options() const {
    plugin::Options options;
    options.paths.assign(paths.begin(), paths.end());
    return options;
  }
};

CLI::App* add(CLI::App& parent, const char* name, const char* help, const std::shared_ptr<PluginArguments>& arguments) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("--path", arguments->paths, "Directory to search first, as plugins.paths does");
  command->add_flag("--json", arguments->json, "One JSON object");
  return command;
}

}  // namespace

void add_plugin(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PluginArguments>();
  CLI::App* plugin = app.add_subcommand("plugin", "Find plugins and say what is known of them");
  plugin->require_subcommand(1);
  add(*plugin, "list", "Every plugin found, shadowed or refused, and why", arguments)
      ->callback([arguments, &exit_code] {
        exit_code = plugin::list_plugins(arguments->options(), arguments->json, std::cout);
      });
  CLI::App* info = add(*plugin, "info", "All that is known of one plugin", arguments);
  info->add_option("NAME", arguments->name, "Name, or absolute path of a .so")->required();
  info->callback([arguments, &exit_code] {
    exit_code = plugin::plugin_info(arguments->options(), arguments->name, arguments->json, std::cout);
  });
}

}  // namespace hexad::cli
