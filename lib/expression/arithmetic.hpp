#pragma once

#include <cstdint>
#include <optional>

#include "lib/expression/program.hpp"

namespace hexad::expression {

// add, subtract, multiply, divide, floor_divide and modulo, as Python has them: of two integers an integer, but for
// divide; the quotient of // is rounded down, and % has the sign of the divisor. nullopt as for apply().
std::optional<Value> arithmetic(Op op, const Value& a, const Value& b);

// Greatest common divisor; of zero and zero, zero.
std::optional<Value> gcd(int64_t a, int64_t b);

}  // namespace hexad::expression
