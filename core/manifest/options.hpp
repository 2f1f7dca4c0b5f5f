// The `plugins` section of the configuration.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::plugin {

struct Options {
  bool enabled = true;                       // false: nothing is loaded
  std::vector<std::filesystem::path> paths;  // searched first, in order
  std::map<std::string, std::string> pin;    // name -> "sha256:<hex>"; if not empty, nothing unlisted loads
  bool allow_insecure_dirs = false;          // load from directories that others may write, with a warning
  std::filesystem::path record_dir;          // where compute calls of the loss are written; empty: nowhere
  int64_t record_steps = 1;                  // of the first steps
  bool require_verified = false;             // load only what `hexad plugin verify` has passed on this machine
  std::vector<std::string> own_process;      // plugins (name or path) that run in a process of their own
  // Not of the section:
  std::filesystem::path program;  // what serves them, as `PROGRAM plugin-process`; empty: this program
  double call_limit_s = 600;      // how long a call may take, of them and of environments, that has no deadline
};

// From the section's JSON: {enabled, paths, pin, allow_insecure_dirs, require_verified, record_dir, record_steps,
// own_process}, each optional; null is the default.
Options options_from(const nlohmann::ordered_json& section);

}  // namespace hexad::plugin
