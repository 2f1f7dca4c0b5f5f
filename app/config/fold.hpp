// Notices that say the same of several keys, as one.
#pragma once
#include <vector>

#include "core/config/problem.hpp"

namespace hexad::config {

// Those of one message become one, at the place of the first, whose key names them all: "a.b, a.c, d". Errors, and the
// order of what is left, stay.
std::vector<Problem> folded(const std::vector<Problem>& problems);

}  // namespace hexad::config
