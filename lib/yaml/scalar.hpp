// What an unquoted YAML scalar means.
#pragma once
#include <string_view>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// The value of a plain scalar under YAML 1.1 as OmegaConf reads it: 012 is 10, 12:30:45 is 45045, yes/no/on/off are
// booleans, 1e-8 is a float, dates and 0o17 are text. Throws Error(config) (without a place) for an integer that
// does not fit 64 bits and for the reserved words `=` and `<<`.
Node::Value plain_scalar(std::string_view text);

// The same for an explicit tag: !!str, !!int, !!float, !!bool, !!null. Throws for a text the type cannot hold.
Node::Value tagged_scalar(std::string_view tag, std::string_view text);

}  // namespace hexad::yaml
