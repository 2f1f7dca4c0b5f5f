// From LaTeX to an expression.
#pragma once
#include <optional>
#include <string_view>

#include "plugins/environment/math/expression.hpp"

namespace hexad::math {

// Normalized LaTeX, read as latex2sympy2_extended 1.11 does: "2\frac{1}{2}" is 5/2, "1,234" a number, "1,2" a set,
// "(1,2)" an open interval, "[2,1]" a pair, letters are real symbols in lower case unless the text looks like one of
// complex numbers. Where it cannot be read as it is, and is a chain of equations, its last side is. Nothing if it
// cannot be read. Throws TooMuch.
Expression read_latex(std::string_view normalized);

// "1234", "12.5", ".5", "1.5E3", with a sign: an integer is a rational, the rest decimals. Null if it is none of these,
// has more than 4300 digits or a large exponent.
Expression read_number(std::string_view text);

}  // namespace hexad::math
