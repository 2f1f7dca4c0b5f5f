// What README.md and docs/from_trl.md tell a newcomer to type is typed here: their shell blocks, in order, in one shell.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"

namespace {

// The text of a page's fenced blocks that are of the language.
std::vector<std::string> blocks(const std::string& language, const std::string& page = "README.md") {
  std::ifstream in(first_party::source() + "/" + page);
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

// A checkout's view: configs from the source, the built program, results in a folder of the test's own.
void look_like_a_checkout(const toy::TempDir& dir) {
  for (const char* name : {"configs", "sdk", "LICENSE"})
    toy::fs::create_directory_symlink(toy::fs::path(first_party::source()) / name, dir / name);
  toy::fs::create_directories(dir / "build");
  toy::fs::create_directory_symlink(std::getenv("HEXAD_BUILD_DIR"), dir / "build/dev");
}

void run_script(const toy::TempDir& dir, const std::string& script) {
  const auto file = dir.write("page.sh", "set -eu\n" + script);
  const int status =
      std::system(fmt::format("cd {} && bash {} > out 2>&1", dir.path().string(), file.string()).c_str());
  INFO(script << toy::read_text(dir / "out"));
  CHECK(status == 0);
}

}  // namespace

TEST_CASE("the page for those who know TRL runs as it stands") {
  const toy::TempDir dir;
  look_like_a_checkout(dir);
  std::string script =
      "cmake --install build/dev --prefix build/hexad > /dev/null\nexport PATH=$PWD/build/hexad/bin:$PATH\n";
  const auto shell = blocks("sh", "docs/from_trl.md");
  CHECK(shell.size() == 4);
  for (const std::string& block : shell) script += block;
  run_script(dir, script);
  CHECK(toy::fs::exists(dir / "my_run/model/config.json"));
}

TEST_CASE("the README's shell examples run, and its plugin is a plugin") {
  const toy::TempDir dir;
  look_like_a_checkout(dir);

  const auto code = blocks("cpp");
  REQUIRE(code.size() == 1);
  dir.write("reinforce/reinforce.cpp", code[0]);
  const auto cmake = blocks("cmake");
  REQUIRE(cmake.size() == 1);
  dir.write("reinforce/CMakeLists.txt", cmake[0]);

  const auto shell = blocks("sh");
  REQUIRE(shell.size() >= 3);
  std::string script;
  for (const std::string& block : shell) {
    if (!block.starts_with("make ")) script += block;  // make's own commands are what runs this test
  }
  run_script(dir, script);
}
