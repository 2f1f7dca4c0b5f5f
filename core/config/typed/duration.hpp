// Texts of the `checkpointing` block that stand for something else.
#pragma once
#include <optional>
#include <string>

namespace hexad::config {

// Seconds of "DD:HH:MM:SS", of which each part may be any number below 10^9; nothing for any other text.
std::optional<double> duration_seconds(const std::string& text);

// The metric that checkpoints are ranked by: val:<name> and train:<name> as they are; NeMo-RL 0.3's "val_reward" is
// val:accuracy, and its other names are validation metrics.
std::string ranked_metric(const std::string& name);

}  // namespace hexad::config
