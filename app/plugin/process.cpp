// hexad plugin-process: one confined plugin, started by the process that uses it.
#include "app/commands.hpp"
#include "core/plugin/confined/serve/server.hpp"

namespace hexad::cli {

void add_plugin_process(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(plugin::confined::kCommand, "One plugin of plugins.own_process");
  command->group("");
  command->callback([&exit_code] { exit_code = plugin::confined::serve(); });
}

}  // namespace hexad::cli
