// `hexad plugin verify`: the conformance levels on one plugin, each in a process of its own.
#pragma once
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "core/manifest/discovery.hpp"
#include "core/manifest/options.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::plugin {

struct VerifyOptions {
  Options plugins;
  // What the plugin needs to be created, besides what its manifest says (verify_config).
  nlohmann::ordered_json plugin_config = nlohmann::ordered_json::object();
  std::vector<int> levels;                   // empty: all
  int timeout_s = 300;                       // of one level
  int64_t memory_bytes = int64_t{16} << 30;  // address space of one level
  bool strict = false;                       // warnings fail
  std::string device = "auto";  // "cpu": no GPU; "cuda": an error without one; "auto": for losses that take its memory
};

// KEY=VALUE, as settings of a plugin are written on a command line and in a manifest. Sets a dotted key of a
// plugin_config; a value that is no JSON is a text. False if this is no assignment.
bool assign(nlohmann::ordered_json& config, const std::string& assignment);

struct LevelReport {
  int level = 0;
  std::string title;
  std::string not_run;  // why; empty if it ran
  std::string note;     // what is no finding, and good to know
  int checks = 0;
  double seconds = 0;
  std::vector<verify::Finding> findings;

  bool failed() const;
};

struct VerifyReport {
  Candidate candidate;
  std::string gpu;  // its name; "" if none was used
  std::vector<LevelReport> levels;

  bool failed() const;
  bool warned() const;
};

// Level 0 reads the file; if it fails, its code is not run. `name`: a path of a .so or manifest, or a name.
VerifyReport verify_plugin(const std::string& name, const VerifyOptions& options);

// Verifies, prints the report (one JSON object, or lines) and remembers a pass of all levels for
// plugins.require_verified. Returns 0, 1 for a failure, 2 for warnings under strict.
int verify_command(const std::string& name, const VerifyOptions& options, bool json, std::ostream& out);

}  // namespace hexad::plugin
