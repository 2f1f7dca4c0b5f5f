// Arithmetic as it stands in running text: "3/4", "2 * (1 + 5)", "2^10".
#pragma once
#include <string_view>

#include "plugins/environment/math/expression.hpp"

namespace hexad::math {

// Read as Python would read it (^ for **), without computing. Null if it cannot be read.
Expression read_arithmetic(std::u32string_view text);

}  // namespace hexad::math
