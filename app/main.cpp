// The `hexad` program: parses the command line and hands over to one function a command.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/console/log.hpp"
#include "app/program.hpp"
#include "compat/compat.hpp"
#include "core/plugin/crash_report.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/base/text.hpp"
#include "lib/process/open_files.hpp"

namespace hexad::cli {
extern const char* const kCommit;  // commit.cpp, which the build makes
}

namespace {

// What is wrong with the words that should name a command; empty if they do.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string path;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
      if (command->get_name() == argv[i]) next = command;
      if (!command->get_group().empty()) names.push_back(path + command->get_name());
    }
    if (names.empty()) break;  // what follows are the command's arguments
    if (!next) {
      const std::string word = path + argv[i];
      const std::optional<std::string> near = hexad::nearest(word, names);
      return fmt::format("unknown command '{}'; {}", word,
                         near ? fmt::format("did you mean '{}'?", *near) : "`hexad --help` lists the commands");
    }
    path += next->get_name() + " ";
    at = next;
  }
  return "";
}

// TRL's and OpenRLHF's form, argparse's: overrides behind dashes, a line each. Empty where the command takes no
// overrides or has none such.
std::string dashed_overrides(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  if (!command->get_option_no_throw("OVERRIDES")) return "";
  hexad::config::Schema schema;
  schema.know(hexad::compat::all().names);
  std::string lines;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t dashes = std::min(argument.find_first_not_of('-'), argument.size());
    const std::string text = argument.substr(dashes), name = text.substr(0, text.find('='));
    const bool number = dashes == 1 && !name.empty() && (std::isdigit(name[0]) != 0 || name[0] == '.');
    if (dashes == 0 || name.empty() || number) continue;
    if (command->get_option_no_throw(argument.substr(0, argument.find('=')))) continue;
    const hexad::config::OtherName* other = schema.other_name(name);
    const bool known = other && !other->key.empty();
    const std::string value = name.size() < text.size() ? text.substr(name.size() + 1) : "VALUE";
    if (!lines.empty()) lines += '\n';
    if (other && !known) {
      lines += fmt::format("{}'s {}: {}", other->system, name, other->note);
    } else {
      lines += fmt::format("overrides have no dashes: key=value, here {}={}{}", known ? other->key : name, value,
                           known && !other->note.empty() ? fmt::format(" ({})", other->note) : "");
    }
  }
  return lines;
}

int run(int argc, char** argv) {
  CLI::App app{"Hexad: RL post-training for LLMs. Backends, generators and losses are plugins, chosen in YAML."};
  app.set_version_flag("--version", HEXAD_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  int exit_code = 0;
  hexad::cli::add_train(app, exit_code);
  hexad::cli::add_config(app, exit_code);
  hexad::cli::add_data(app, exit_code);
  hexad::cli::add_plan(app, exit_code);
  hexad::cli::add_plugin(app, exit_code);
  hexad::cli::add_eval(app, exit_code);
  hexad::cli::add_generate(app, exit_code);
  hexad::cli::add_chat(app, exit_code);
  hexad::cli::add_score(app, exit_code);
  hexad::cli::add_tokenize(app, exit_code);
  hexad::cli::add_convert(app, exit_code);
  hexad::cli::add_report(app, exit_code);
  hexad::cli::add_checkpoint(app, exit_code);
  hexad::cli::add_doctor(app, hexad::cli::kCommit, exit_code);
  hexad::cli::add_setup(app);
  hexad::cli::add_help(app, exit_code);
  hexad::cli::add_worker(app, exit_code);
  hexad::cli::add_plugin_process(app, exit_code);
  if (argc > 1 && std::string_view(argv[1]) == "__complete") {  // its words are no command line of its own
    std::cout << hexad::cli::completions(app, {argv + 2, argv + argc});
    return 0;
  }
  if (const std::string problem = unknown_command(app, argc, argv); !problem.empty()) {
    std::fprintf(stderr, "hexad: %s\n", hexad::indented(problem).c_str());
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream said;
    const int code = app.exit(error, std::cout, said);
    std::fputs(hexad::printable(hexad::without_assigned_secrets(said.str())).c_str(), stderr);
    if (const std::string hint = code == 0 ? "" : dashed_overrides(app, argc, argv); !hint.empty())
      std::fprintf(stderr, "%s\n", hexad::indented(hexad::without_assigned_secrets(hint)).c_str());
    return code == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  hexad::plugin::install_crash_report();  // environments are called in this process
  std::signal(SIGCHLD, SIG_DFL);          // where it is ignored, the kernel reaps children, and how they ended is lost
  hexad::process::raise_open_files();     // connections of ranks, files of models; children inherit it
  hexad::console::log_to_standard_error("hexad");
  return hexad::cli::run_program("hexad", [&] { return run(argc, argv); });
}
