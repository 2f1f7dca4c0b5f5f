// OmegaConf's merge of two trees.
#pragma once
#include <string>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

enum class NewKeys { allowed, refused };

// Merges `source` into the map at `path` (keys from `root`): maps merge, everything else replaces, "???" replaces
// nothing. A `${a.b}` in the way of a map is first replaced by a copy of the map it leads to. A map against a list is
// an Error(config), and so is a key that `root` lacks where new keys are refused.
void merge(Node& root, const std::vector<std::string>& path, const Node& source, NewKeys new_keys = NewKeys::allowed);

}  // namespace hexad::yaml
