// Level 0: what can be known of a plugin without running its code.
#pragma once
#include "core/manifest/discovery.hpp"
#include "core/manifest/options.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::plugin {

// The checks before loading (manifest, place, digest, ELF, versions); then what would only show on another machine:
// needed libraries, run paths, lazy binding, no build id. Returns false if the plugin may not be loaded.
bool check_file(const Candidate& candidate, const Options& options, verify::Findings& findings);

}  // namespace hexad::plugin
