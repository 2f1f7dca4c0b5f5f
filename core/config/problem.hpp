// One thing to say about a configuration.
#pragma once
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::config {

struct Problem {
  enum class Severity { error, notice };
  Severity severity = Severity::error;
  yaml::Location location;
  std::string key;
  std::string message;

  bool is_error() const { return severity == Severity::error; }
  // "a.yaml:3:7: error: grpo.seed: ..."
  std::string text() const;
};

}  // namespace hexad::config
