// What operators and functions mean.
#pragma once

#include <optional>
#include <span>

#include "lib/expression/program.hpp"

namespace hexad::expression {

// Of any Op that has operands. Unknown (nullopt): operands of a wrong kind, a division by zero, an integer beyond 64
// bits, a number that is not finite; and an unknown operand, but where Kleene's logic can do without it.
std::optional<Value> apply(Op op, std::span<const std::optional<Value>> operands);

}  // namespace hexad::expression
