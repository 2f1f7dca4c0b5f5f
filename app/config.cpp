// hexad config check|show CONFIG [key=value ...], from-trl|from-verl FILE [key=value ...]
#include <iostream>

#include "app/check/check.hpp"
#include "app/commands.hpp"
#include "app/config/commands.hpp"
#include "app/config/from_other.hpp"
#include "compat/compat.hpp"
#include "lib/base/error.hpp"

namespace hexad::cli {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
  bool origins = false;
  bool here = false;
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
  Checked checked;
  std::optional<config::BytesFact> bytes;
  try {
    // Left to the end of the process, which is near: freeing it in pieces takes a tenth of the command's own time.
    static const auto* const loaded =
        new config::Loaded(config::load_with_defaults(arguments.config, arguments.overrides, compat::all()));
    bytes = loaded->facts.bytes;
    checked = check_all(*loaded, {.is_here = arguments.here});
  } catch (const Error& error) {
    checked = {{{config::Problem::Severity::error, {}, "", error.what()}}, error.exit_code()};
  }
  config::print_problems(checked.problems, arguments.config, arguments.json, std::cout, bytes);
  return checked.exit_code;
}

CLI::App* add_from(CLI::App& parent, const char* name, const char* help,
                   const std::shared_ptr<config::FromOther>& from) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("FILE", from->file, "YAML or JSON file")->required();
  command->add_option("SETTINGS", from->overrides, "key=value of that system's, over the file");
  command->add_option("--out", from->out, "File that is written, in place of standard output");
  return command;
}

void add_from_others(CLI::App& parent) {
  auto trl = std::make_shared<config::FromOther>(), verl = std::make_shared<config::FromOther>();
  CLI::App* from_trl = add_from(parent, "from-trl", "Write a config of TRL's arguments", trl);
  from_trl->add_option("--trainer", trl->trainer, "Whose arguments: grpo, sft, dpo, reward; else the keys tell");
  from_trl->add_option("--processes", trl->processes, "GPUs that TRL trains on (accelerate's num_processes)");
  from_trl->callback([trl] { config::config_from_trl(*trl, std::cout, std::cerr); });
  add_from(parent, "from-verl", "Write a config of verl's", verl)->callback([verl] {
    config::config_from_verl(*verl, std::cout, std::cerr);
  });
}

}  // namespace

void add_config(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* config = app.add_subcommand("config", "Validate or print a config");
  config->require_subcommand(1);
  CLI::App* checks =
      add(*config, "check", "Validate: exit 0, 2, or 3 for plugins; every error with file:line:column", arguments);
  checks->add_flag("--here", arguments->here, "As train on this machine: what is not here is an error, too");
  checks->callback([arguments, &exit_code] { exit_code = check(*arguments); });
  CLI::App* show = add(*config, "show", "Print the resolved config", arguments);
  show->add_flag("--origin", arguments->origins, "With the file, override or default that each value comes from");
  show->callback([arguments, &exit_code] {
    exit_code = config::config_show(arguments->config, arguments->overrides, arguments->json, std::cout, std::cerr,
                                    arguments->origins, compat::all());
  });
  add_from_others(*config);
}

}  // namespace hexad::cli
