// Numbers, and arithmetic as it stands in running text: "3/4", "2 * (1 + 5)", "2^10".
#pragma once
#include <string_view>

#include "plugins/environment/math/expression.hpp"

namespace hexad::math {

// "1234", "12.5", ".5", "1.5E3", with a sign: an integer is a rational, the rest decimals. Null if it is none of these,
// has more than 4300 digits or a large exponent.
Expression read_number(std::string_view text);

// Read as Python would read it (^ for **), without computing. Null if it cannot be read.
Expression read_arithmetic(std::u32string_view text);

}  // namespace hexad::math
