// hexad plugin-process: one confined plugin, started by the process that uses it.
#include <memory>

#include "app/commands.hpp"
#include "core/plugin/confined/serve/server.hpp"

namespace hexad::cli {

void add_plugin_process(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(plugin::confined::kCommand, "One plugin of plugins.own_process");
  command->group("");
  const auto parent = std::make_shared<int>(0);
  command->add_option("PARENT", *parent, "the process that started it");
  command->callback([parent, &exit_code] { exit_code = plugin::confined::serve(*parent); });
}

}  // namespace hexad::cli
