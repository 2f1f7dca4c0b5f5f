// What an expression is parsed into: instructions for a stack of values, operands before operators.
//
// Nothing has a side effect, so every part is evaluated and three-valued logic chooses: no jumps, and no recursion that
// an expression could drive deep.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/expression/value.hpp"

namespace hexad::expression {

constexpr size_t kMostCharacters = 2000, kMostLevels = 64, kMostParts = 500;

// Of no operands; of three-valued logic (choose: of a, c and b, as in `a if c else b`); the others are unknown where an
// operand is.
// clang-format off
enum class Op {
  constant, path, has, known,
  choose, either, both,
  negation, equal, not_equal, less, less_equal, greater, greater_equal, in, not_in,
  add, subtract, multiply, divide, floor_divide, modulo, minus, list, min, max, gcd, len
};
// clang-format on

struct Instruction {
  Op op;
  size_t operands = 0;  // taken from the stack
  size_t index = 0;     // of Op::constant in constants; of Op::path and Op::has in paths
};

struct Program {
  std::string text;
  std::vector<Instruction> code;
  std::vector<Value> constants;
  std::vector<std::string> paths;  // each once, in the order of the text
};

// Throws ParseError.
Program parse_program(std::string_view text);

}  // namespace hexad::expression
