// hexad plugin list|info NAME|new KIND NAME; verify and replay have files of their own
#include <filesystem>
#include <iostream>

#include "app/commands.hpp"
#include "app/plugin/plugin.hpp"

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

void add_new(CLI::App& parent, int& exit_code) {
  auto wanted = std::make_shared<plugin::NewPlugin>();
  auto json = std::make_shared<bool>(false);
  wanted->into = ".";
  CLI::App* command = parent.add_subcommand("new", "A folder with a plugin that compiles, to start from");
  command
      ->add_option("KIND", wanted->kind,
                   "loss_c, loss_cuda, loss_cpp, generator, backend, backend_torch, environment, reward_python, "
                   "reward_bash or tracker_python")
      ->required();
  command->add_option("NAME", wanted->name, "Name of the plugin and of the folder")->required();
  command->add_option("--into", wanted->into, "Existing folder to make it in");
  command->add_flag("--json", *json, "One JSON object");
  command->callback([wanted, json, &exit_code] {
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    exit_code = plugin::new_plugin(program.parent_path().parent_path(), *wanted, *json, std::cout);
  });
}

}  // namespace

void add_plugin(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PluginArguments>();
  CLI::App* plugin = app.add_subcommand("plugin", "Find plugins, say what is known of them, start a new one");
  plugin->require_subcommand(1);
  add(*plugin, "list", "Every plugin found, shadowed, refused or not built, and why", arguments)
      ->callback([arguments, &exit_code] {
        exit_code = plugin::list_plugins(arguments->options(), arguments->json, std::cout);
      });
  CLI::App* info =
      add(*plugin, "info", "All that is known of one plugin, and the configuration keys that it reads", arguments);
  info->add_option("NAME", arguments->name, "Name, or path of a .so")->required();
  info->callback([arguments, &exit_code] {
    exit_code = plugin::plugin_info(arguments->options(), arguments->name, arguments->json, std::cout);
  });
  add_new(*plugin, exit_code);
  add_plugin_verify(*plugin, "verify", exit_code);
  add_plugin_replay(*plugin, exit_code);
}

}  // namespace hexad::cli
