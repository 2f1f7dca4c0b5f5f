// Validates a configuration against the schema and the rules between keys, before anything starts.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/node.hpp"

namespace hexad::config {

// One thing to say about a configuration.
struct Problem {
  enum class Severity { error, notice };
  Severity severity = Severity::error;
  Location location;
  std::string key;
  std::string message;

  bool is_error() const { return severity == Severity::error; }
  // "a.yaml:3:7: error: grpo.seed: ..."
  std::string text() const;
};

// A configuration with the schema's defaults, before it is checked. A file in ROLL's form (config/roll/) is translated to
// NeMo-RL's keys, and texts that mean another one here are replaced (config/synonyms.hpp); `problems` is what is said
// about both.
struct Loaded {
  Node root;
  std::vector<Problem> problems;
};
Loaded load_with_defaults(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

// Everything wrong with a loaded configuration, and a notice for each key that is accepted without being used.
// Unknown keys, types, ranges, choices, features that are not available, rules between keys. Errors come first.
std::vector<Problem> check(const Loaded& loaded);

// A configuration that is valid, with the schema's defaults filled in.
struct Resolved {
  Node root;
  std::vector<Problem> notices;
};

// Load + defaults + check. Throws one Error(config) that lists every error, a line each.
// A plain override may add a key that the schema knows.
Resolved resolve(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

}  // namespace hexad::config
