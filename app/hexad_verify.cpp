// hexad-verify PLUGIN: the conformance kit without the engine, for those who build plugins.
#include <cstdio>

#include "lib/base/error.hpp"
#include "app/commands.hpp"

int main(int argc, char** argv) {
  CLI::App app{
      "Runs Hexad's conformance levels on a plugin. Exit status: 0 passed, 1 failed, 2 wrong usage or, with --strict, "
      "warnings."};
  int exit_code = 0;
  hexad::cli::add_plugin_verify(app, "", exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const hexad::Error& error) {
    std::fprintf(stderr, "hexad-verify: %s\n", error.what());
    return error.exit_code();
  }
  return exit_code;
}
