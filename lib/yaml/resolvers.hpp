// The functions of `${name:arguments}` that need no look at the tree.
#pragma once
#include <string>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// NeMo-RL's add, mul, div, max (two arguments, Python's arithmetic: integers stay integers, div is true division) and
// OmegaConf's oc.env (environment variable, default). Throws Error(config) for an unknown name, a wrong number or
// kind of arguments, division by zero, an integer beyond 64 bits, a variable that is not set.
Node call_resolver(const std::string& name, const std::vector<Node>& arguments);

}  // namespace hexad::yaml
