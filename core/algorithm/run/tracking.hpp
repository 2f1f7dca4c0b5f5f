// Trackers of a run: W&B, MLflow ... (docs/trackers.md).
#pragma once
#include <filesystem>

#include "core/algorithm/run/training.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::algorithm {

// Starts those that the configuration asks for; nothing where it asks for none. They know the run by an id that its
// checkpoints keep, so that a resumed run goes on under the same. `program`: hexad, beside which their scripts lie;
// `resolved`: the configuration, of which they are told without its secrets.
void start_trackers(Training& run, const std::filesystem::path& program, const yaml::Node& resolved);

}  // namespace hexad::algorithm
