// What is known of an expression's value without giving values to its symbols.
#pragma once
#include <optional>

#include "plugins/environment/math/expression.hpp"

namespace hexad::math {

// Rational arithmetic with powers, roots of perfect powers, factorials and the like; nothing where that does not lead
// to a rational number, or to one of more than kMostBits bits. Where decimals take part it is arithmetic of 53 bits.
inline constexpr unsigned kMostBits = 1 << 16;
std::optional<Rational> exact(const Node& a);
// As numbers of 53 bits, if one of them is made of decimals; nothing where a value is not known.
std::optional<bool> equal_exactly(const Node& a, const Node& b);

bool has_symbols(const Node& a);  // or functions that nobody knows

// -1, 0, 1 for a < b, a = b, a > b; nothing if they are not both known real numbers. Infinities are numbers here.
std::optional<int> real_order(const Node& a, const Node& b);
// Known to be no real number.
bool not_real(const Node& a);

}  // namespace hexad::math
