// Runs a plugin's check library (hexad/check.h) in a child process.
#pragma once
#include <vector>

#include "core/config/declaration/declared_rules.hpp"
#include "core/config/declaration/scope.hpp"
#include "core/config/declaration/selection.hpp"

namespace hexad::config {

// What the library of the chosen plugin's manifest says of its block; nothing if the manifest names none. A library that is
// not the manifest's (by its digest), that others could have changed, that crashes, hangs or says nonsense is one error that
// names it. `allow_insecure`: plugins.allow_insecure_dirs. Forks: call it before any thread exists.
struct Checked {
  std::vector<Problem> problems;
  CheckNames names;  // what rules read as check.NAME
};
Checked run_check_library(const Chosen& chosen, const Scope& scope, bool allow_insecure);

}  // namespace hexad::config
