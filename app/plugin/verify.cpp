// hexad plugin verify NAME|FILE.so
#include <iostream>

#include "app/commands.hpp"
#include "app/verify/verify.hpp"

namespace hexad::cli {
namespace {

struct VerifyArguments {
  std::string name;
  std::vector<std::string> paths, keys;
  plugin::VerifyOptions options;
  bool json = false;
};

}  // namespace

void add_plugin_verify(CLI::App& app, const char* name, int& exit_code) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command =
      *name ? app.add_subcommand(name, "Run the conformance levels on a plugin, each in a process of its own") : &app;
  command->add_option("PLUGIN", arguments->name, "A .so or its manifest, or the name of a plugin that is found")
      ->required();
  command->add_option("SETTINGS", arguments->keys, "KEY=VALUE: what its plugin_config has to hold");
  command->add_option("--level", arguments->options.levels, "Only these levels: 0 to 7, as in 2,5")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 7));
  command
      ->add_option("--device", arguments->options.device,
                   "auto: level 7 if there is a GPU and the loss takes its memory; cuda: an error without one; cpu")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  command->add_option("--timeout", arguments->options.timeout_s, "Seconds that one level may take")
      ->check(CLI::Range(1, 86400));
  command->add_option("--path", arguments->paths, "Directory to search first, as plugins.paths does");
  command->add_flag("--strict", arguments->options.strict, "Warnings end with exit status 2");
  command->add_flag("--json", arguments->json, "One JSON object");
  command->callback([arguments, &exit_code] {
    for (const std::string& key : arguments->keys) set_plugin_key(arguments->options.plugin_config, key);
    arguments->options.plugins.paths.assign(arguments->paths.begin(), arguments->paths.end());
    exit_code = plugin::verify_command(arguments->name, arguments->options, arguments->json, std::cout);
  });
}

void set_plugin_key(nlohmann::ordered_json& config, const std::string& assignment) {
  if (!plugin::assign(config, assignment))
    throw CLI::ValidationError("KEY=VALUE", "'" + assignment + "' is no assignment, wanted for example vocab_size=12");
}

}  // namespace hexad::cli
