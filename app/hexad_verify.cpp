// hexad-verify PLUGIN: the conformance kit without the engine, for those who build plugins.
#include "app/commands.hpp"
#include "app/program.hpp"

namespace {

int run(int argc, char** argv) {
  CLI::App app{
      "Runs Hexad's conformance levels on a plugin. Exit status: 0 passed, 1 failed, 2 wrong usage or, with --strict, "
      "warnings."};
  int exit_code = 0;
  hexad::cli::add_plugin_verify(app, "", exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  hexad::cli::log_to_standard_error("hexad-verify");
  return hexad::cli::run_program("hexad-verify", [&] { return run(argc, argv); });
}
