// What README.md tells a newcomer to type is typed here: its shell blocks, in order, in one shell.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"

namespace {

// The text of the fenced blocks of README.md that are of the language.
std::vector<std::string> blocks(const std::string& language) {
  std::ifstream in(first_party::source() + "/README.md");
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!inside && line == "```" + language) {
      inside = true;
      found.emplace_back();
    } else if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

}  // namespace

TEST_CASE("the README's shell examples run, and its plugin is a plugin") {
  const toy::TempDir dir;
  const std::string source = first_party::source(), build = std::getenv("HEXAD_BUILD_DIR");
  // A checkout's view: configs from the source, the built program, results in a folder of the test's own.
  for (const char* name : {"configs", "sdk", "LICENSE"})
    toy::fs::create_directory_symlink(toy::fs::path(source) / name, dir / name);
  toy::fs::create_directories(dir / "build");
  toy::fs::create_directory_symlink(build, dir / "build/dev");

  const auto code = blocks("cpp");
  REQUIRE(code.size() == 1);
  dir.write("reinforce/reinforce.cpp", code[0]);
  const auto cmake = blocks("cmake");
  REQUIRE(cmake.size() == 1);
  dir.write("reinforce/CMakeLists.txt", cmake[0]);

  const auto shell = blocks("sh");
  REQUIRE(shell.size() >= 3);
  std::string script = "set -eu\n";
  for (const std::string& block : shell) {
    if (!block.starts_with("make ")) script += block;  // make's own commands are what runs this test
  }
  const auto file = dir.write("readme.sh", script);
  const std::string command = fmt::format("cd {} && bash {} > out 2>&1", dir.path().string(), file.string());
  const int status = std::system(command.c_str());
  INFO(script << toy::read_text(dir / "out"));
  CHECK(status == 0);
}
