// Level 3, of plugins that declare their keys: what `create` reads, beside what the manifest says.
#pragma once
#include <filesystem>

#include "core/config/declaration/declaration.hpp"
#include "sdk/verify/engine.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::plugin {

struct DeclaredCase {
  const config::Declaration& declaration;
  std::string section_path;
  nlohmann::ordered_json section;  // without defaults
  std::filesystem::path folder;    // that {dir} stands for in texts of verify_configs
  std::filesystem::path models;    // that {models} stands for
  bool own = false;                // of the engine's own folder: a key that is never read is an error
};

// Creates an instance with the defaults, and one with each of the declaration's verify_configs. Each rule is one
// finding, whatever the number of its keys.
void check_declared_keys(const verify::Subject& subject, const DeclaredCase& tested, verify::Findings& findings);

}  // namespace hexad::plugin
