// `hexad config from-trl|from-verl`: another system's settings, written as a configuration.
#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace hexad::config {

struct FromOther {
  std::string file;                       // YAML or JSON
  std::vector<std::string> overrides;     // of the other system's keys
  std::string out;                        // a file; empty: `out` below
  std::string trainer;                    // of TRL's; empty: the keys tell
  std::optional<int64_t> processes = {};  // of TRL's
};

// Writes the configuration to `out` or a file, and a line about each setting that it does not carry to `errors`.
// Throws Error(config) where the settings are no such file's, and Error(data) where a file cannot be read or written.
void config_from_trl(const FromOther& from, std::ostream& out, std::ostream& errors);
void config_from_verl(const FromOther& from, std::ostream& out, std::ostream& errors);

}  // namespace hexad::config
