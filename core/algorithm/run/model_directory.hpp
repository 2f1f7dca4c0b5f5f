// From what policy.model_name says to a directory.
#pragma once
#include <string>

namespace hexad::algorithm {

// policy.model_name as a local directory with a config.json: a path, or a name that is in the Hub's cache (lib/hub).
// Throws an Error that says what was found instead (a GGUF file, a run's checkpoint, a snapshot that is there in part,
// nothing) and how to get a directory. `has_weights`: a snapshot without weights is there in part.
std::string find_model(const std::string& model_name, bool has_weights = false);

}  // namespace hexad::algorithm
