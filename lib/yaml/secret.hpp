// Configurations without their secrets: as they are written for others to read.
#pragma once
#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// A resolved tree as it may be written. A value that came from the environment is the interpolation that gives it; one
// under a name of a secret (base/said/secret.hpp) is kMasked, and so are passwords in URLs.
Node without_secrets(const Node& root);

// Has messages leave out the secrets of a tree: values under names of secrets.
void keep_secrets(const Node& root);

// Throws Error(config) for a value that was masked when the tree was written: a run would send three asterisks.
void refuse_masked(const Node& root);

}  // namespace hexad::yaml
