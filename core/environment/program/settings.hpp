// env.<name> of a reward program, read and checked.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hexad::environment {

struct ProgramSettings {
  std::string path;                  // "env.<name>"
  std::string shown;                 // the command, for messages
  std::vector<std::string> command;  // program first
  int64_t num_workers = 0, retries = 0, batch_size = 0;
  double timeout_s = 0, startup_timeout_s = 0;
  std::vector<std::string> components;
};

// See program_environment.hpp. Throws Error(config).
ProgramSettings program_settings(const std::string& name, const nlohmann::ordered_json& section);

}  // namespace hexad::environment
