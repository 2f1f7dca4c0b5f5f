// From what policy.model_name says to a directory, and what is read there before ranks load its weights.
#pragma once
#include <string>

#include "core/config/typed/run_config.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::algorithm {

// policy.model_name as a local directory with a config.json: a path, or a name that is in the Hub's cache (lib/hub).
// Throws an Error that says what was found instead (a GGUF file, a run's checkpoint, a snapshot that is there in part,
// nothing) and how to get a directory. `has_weights`: a snapshot without weights is there in part.
std::string find_model(const std::string& model_name, bool has_weights = false);

struct ModelOnDisk {
  std::string directory;
  rollout::ModelText text;
};
// Of policy.model_name and policy.tokenizer. Throws Error for what is not there, is damaged, or does not fit together.
ModelOnDisk read_model(const config::RunConfig& run);

}  // namespace hexad::algorithm
