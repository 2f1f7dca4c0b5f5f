// Polynomials of one symbol with real coefficients.
#pragma once
#include <optional>
#include <vector>

#include "plugins/environment/math/evaluate.hpp"

namespace hexad::math {

using Polynomial = std::vector<Real>;  // by rising power, the last is not zero; empty: zero

inline constexpr size_t kHighestDegree = 24;

// Nothing for more than one symbol, for other functions of it, or for complex coefficients.
std::optional<Polynomial> polynomial_of(const Expression& a);
Real polynomial_at(const Polynomial& polynomial, const Real& x);
// From left to right, each once; nothing if all numbers are.
std::optional<std::vector<Real>> real_roots(const Polynomial& polynomial);

// The names of the symbols in it.
std::vector<std::string> symbol_names(const Node& a);

}  // namespace hexad::math
