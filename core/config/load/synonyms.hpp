// Texts of NeMo-RL's that mean another one here: engines that do not run here, names of older versions.
#pragma once
#include <vector>

#include "core/config/declaration/selection.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// Puts the texts in effect in their place, and says so in a notice each, but not of a plugin that is not used.
std::vector<Problem> replace_synonyms(yaml::Node& root, const Schema& schema, const Selection& selection);

}  // namespace hexad::config
