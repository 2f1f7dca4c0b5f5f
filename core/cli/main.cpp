// The `hexad` program: parses the command line and hands over to one function a command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "core/base/error.hpp"
#include "core/cli/commands.hpp"

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("hexad"));  // standard output is for answers
  CLI::App app{"Hexad: RL post-training for LLMs. Backends, generators and losses are plugins, chosen in YAML."};
  app.set_version_flag("--version", HEXAD_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  int exit_code = 0;
  hexad::cli::add_train(app, exit_code);
  hexad::cli::add_config(app, exit_code);
  hexad::cli::add_plugin(app, exit_code);
  hexad::cli::add_generate(app, exit_code);
  hexad::cli::add_score(app, exit_code);
  hexad::cli::add_tokenize(app, exit_code);
  hexad::cli::add_convert(app, exit_code);
  hexad::cli::add_report(app, exit_code);
  hexad::cli::add_worker(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const hexad::Error& error) {
    std::fprintf(stderr, "hexad: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hexad: internal error: %s\n", error.what());
    return 1;
  }
  return exit_code;
}
