// The weights that a backend exports.
#pragma once
#include <map>
#include <string>

#include "sdk/verify/engine.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::verify {

// The bytes of every weight by name, in one iteration over full weights; reports what an iteration may not do.
std::map<std::string, std::string> export_weights(const Subject& subject, hexad_backend* self, Findings& findings);

}  // namespace hexad::verify
