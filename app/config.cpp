// hexad config check|show CONFIG [key=value ...]
#include <iostream>

#include "app/commands.hpp"
#include "app/config/commands.hpp"
#include "app/config_check.hpp"
#include "compat/compat.hpp"
#include "lib/base/error.hpp"

namespace hexad::cli {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
  bool origins = false;
};

CLI::App* add(CLI::App& parent, const char* name, const char* help, const std::shared_ptr<Arguments>& arguments) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("CONFIG", arguments->config, "YAML file")->required();
  command->add_option("OVERRIDES", arguments->overrides, "key=value, +key=value, ++key=value, ~key");
  command->add_flag("--json", arguments->json, "One JSON object");
  return command;
}

// A configuration that cannot be read at all is one error.
int check(const Arguments& arguments) {
  std::vector<config::Problem> problems;
  std::optional<config::BytesFact> bytes;
  try {
    // Left to the end of the process, which is near: freeing it in pieces takes a tenth of the command's own time.
    static const auto* const loaded =
        new config::Loaded(config::load_with_defaults(arguments.config, arguments.overrides, compat::all()));
    bytes = loaded->facts.bytes;
    problems = check_all(*loaded);
  } catch (const Error& error) {
    problems = {{config::Problem::Severity::error, {}, "", error.what()}};
  }
  return config::print_problems(problems, arguments.config, arguments.json, std::cout, bytes);
}

}  // namespace

void add_config(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* config = app.add_subcommand("config", "Validate or print a config");
  config->require_subcommand(1);
  add(*config, "check", "Validate: exit 0 or 2, every error with file:line:column", arguments)
      ->callback([arguments, &exit_code] { exit_code = check(*arguments); });
  CLI::App* show = add(*config, "show", "Print the resolved config", arguments);
  show->add_flag("--origin", arguments->origins, "With the file, override or default that each value comes from");
  show->callback([arguments, &exit_code] {
    exit_code = config::config_show(arguments->config, arguments->overrides, arguments->json, std::cout, std::cerr,
                                    arguments->origins, compat::all());
  });
}

}  // namespace hexad::cli
