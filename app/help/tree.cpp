#include "app/help/tree.hpp"

namespace hexad::help {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* each) { return !each->get_group().empty() && !each->get_name().empty(); });
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* each : commands_of(app))
    if (each->get_name() == name) return each;
  return nullptr;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* each) { return each->nonpositional() && !each->get_group().empty(); });
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* each) { return !each->nonpositional() && !each->get_group().empty(); });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  return all;
}

}  // namespace hexad::help
