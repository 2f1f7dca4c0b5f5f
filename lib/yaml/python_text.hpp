// Values as Python's str() writes them: what OmegaConf puts where `${}` stands inside text.
#pragma once
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// repr(float): shortest digits that round-trip, "1e-08", "0.5", "3.0", "inf".
std::string python_float(double value);

// str(value): None, True, 12, 0.5, text as it is, ['a', 1], {'k': 'v'}.
std::string python_str(const Node& value);

}  // namespace hexad::yaml
