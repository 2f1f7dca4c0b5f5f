// Manual pages, made of the tree of commands when the program is built.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hexad::help {

struct ManPage {
  std::string name;  // "hexad-config-check.1"
  std::string text;  // in man(7)'s macros
};

// hexad.1, and one for each command that users see. `version`: of the program.
std::vector<ManPage> man_pages(const CLI::App& app, const std::string& version);

}  // namespace hexad::help
