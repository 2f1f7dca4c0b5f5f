// Texts of NeMo-RL's that mean another one here: engines that do not run here, names of older versions.
#pragma once
#include <vector>

#include "core/config/check.hpp"

namespace hexad::config {

// Puts the texts in effect in their place, and says so in a notice each, but not of a backend that does not train.
std::vector<Problem> replace_synonyms(Node& root);

}  // namespace hexad::config
