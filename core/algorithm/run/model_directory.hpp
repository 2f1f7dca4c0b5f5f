// From what policy.model_name says to a directory.
#pragma once
#include <string>

namespace hexad::algorithm {

// policy.model_name as a local directory with a config.json. Throws Error(config) that says what was found instead (a
// GGUF file, a run's checkpoint, a hub's name, nothing) and how to get a directory.
std::string find_model(const std::string& model_name);

}  // namespace hexad::algorithm
