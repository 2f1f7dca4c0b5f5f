// int(), float(), str() and bool() of Hydra's override grammar.
#pragma once
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// Casts one argument; lists and maps element by element. Throws Error(config) for another function, another number of
// arguments, or a value that cannot be cast.
Node cast_value(const std::string& function, const Node::List& arguments);

}  // namespace hexad::yaml
