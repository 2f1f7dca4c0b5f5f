// All that `hexad config check` says.
#pragma once
#include <vector>

#include "core/config/check.hpp"

namespace hexad::cli {

// What config::check says of the configuration; where it finds no error, what a run would be refused for before it
// starts, and plugins that are not there or that the section `plugins` refuses. Errors first.
std::vector<config::Problem> check_all(const config::Loaded& loaded);

}  // namespace hexad::cli
