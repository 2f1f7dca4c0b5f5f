// Where a configuration value was written.
#pragma once
#include <string>

namespace hexad::yaml {

// A position in a YAML file (line and column count from 1), or, with line 0, a named origin: an override of the
// command line ("override grpo.seed=1") or the schema ("default").
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  // "configs/a.yaml:3:7", or the bare origin.
  std::string text() const;
};

}  // namespace hexad::yaml
