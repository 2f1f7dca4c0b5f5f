// hexad plugin verify NAME|FILE.so
#include <iostream>

#include "core/base/json.hpp"
#include "core/cli/commands.hpp"
#include "core/plugin/verify/verify.hpp"

namespace hexad::cli {
namespace {

struct VerifyArguments {
  std::string name;
  std::vector<std::string> paths, keys;
  plugin::VerifyOptions options;
  bool json = false;
};

// KEY=VALUE, with a dotted key, into the plugin_config; a value that is no JSON is a text.
void set_key(nlohmann::ordered_json& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw CLI::ValidationError("KEY=VALUE", "'" + assignment + "' is no assignment, wanted for example vocab_size=12");
  const std::string text = assignment.substr(equals + 1);
  const auto value = try_parse_json<nlohmann::ordered_json>(text);
  std::string path = "/" + assignment.substr(0, equals);
  std::replace(path.begin(), path.end(), '.', '/');
  config[nlohmann::ordered_json::json_pointer(path)] = value.is_discarded() ? nlohmann::ordered_json(text) : value;
}

}  // namespace

void add_plugin_verify(CLI::App& app, const char* name, int& exit_code) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command =
      *name ? app.add_subcommand(name, "Run the conformance levels on a plugin, each in a process of its own") : &app;
  command->add_option("PLUGIN", arguments->name, "A .so or its manifest, or the name of a plugin that is found")
      ->required();
  command->add_option("KEY=VALUE", arguments->keys, "What its plugin_config has to hold");
  command->add_option("--level", arguments->options.levels, "Only these levels: 0 to 7, as in 2,5")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 7));
  command->add_option("--timeout", arguments->options.timeout_s, "Seconds that one level may take")
      ->check(CLI::Range(1, 86400));
  command->add_option("--path", arguments->paths, "Directory to search first, as plugins.paths does");
  command->add_flag("--strict", arguments->options.strict, "Warnings end with exit status 2");
  command->add_flag("--json", arguments->json, "One JSON object");
  command->callback([arguments, &exit_code] {
    for (const std::string& key : arguments->keys) set_key(arguments->options.plugin_config, key);
    arguments->options.plugins.paths.assign(arguments->paths.begin(), arguments->paths.end());
    exit_code = plugin::verify_command(arguments->name, arguments->options, arguments->json, std::cout);
  });
}

}  // namespace hexad::cli
