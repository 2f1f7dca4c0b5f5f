// The tree of commands as users see it: what completion and manual pages are made of.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hexad::help {

// Commands of a command, but for hidden ones, in their order.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
// The command of this name, or null.
const CLI::App* command_named(const CLI::App& app, const std::string& name);

// Options with dashes, and arguments by their place; hidden ones are left out.
std::vector<const CLI::Option*> options_of(const CLI::App& app);
std::vector<const CLI::Option*> arguments_of(const CLI::App& app);
bool takes_value(const CLI::Option& option);
// "-h,--help" as {"-h", "--help"}.
std::vector<std::string> spellings(const CLI::Option& option);

}  // namespace hexad::help
