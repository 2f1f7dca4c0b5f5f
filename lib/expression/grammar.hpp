// The tables of the parser.
#pragma once

#include <string_view>

#include "lib/expression/program.hpp"

namespace hexad::expression {

enum Level { kOr, kAnd, kNot, kComparison, kSum, kProduct, kMinus };  // later ones bind tighter

struct Operator {
  std::string_view symbol;
  Level level;
  Op op;
};
// clang-format off
constexpr Operator kOperators[] = {  // of two operands
    {"or", kOr, Op::either}, {"and", kAnd, Op::both},
    {"==", kComparison, Op::equal}, {"!=", kComparison, Op::not_equal},
    {"<", kComparison, Op::less}, {"<=", kComparison, Op::less_equal},
    {">", kComparison, Op::greater}, {">=", kComparison, Op::greater_equal},
    {"in", kComparison, Op::in}, {"not", kComparison, Op::not_in},  // the `not` of `not in`
    {"+", kSum, Op::add}, {"-", kSum, Op::subtract},
    {"*", kProduct, Op::multiply}, {"/", kProduct, Op::divide}, {"//", kProduct, Op::floor_divide},
    {"%", kProduct, Op::modulo}};

struct Function {
  std::string_view name;
  Op op;
  size_t least, most;  // arguments
};
constexpr size_t kAnyNumber = kMostParts;
constexpr Function kFunctions[] = {
    {"gcd", Op::gcd, 2, 2}, {"has", Op::has, 1, 1}, {"known", Op::known, 1, 1}, {"len", Op::len, 1, 1},
    {"max", Op::max, 2, kAnyNumber}, {"min", Op::min, 2, kAnyNumber}};
// clang-format on

}  // namespace hexad::expression
