// Expressions over values that a caller looks up: `world.ranks % my_cfg.tp == 0 and has(optimizer.name)`.
//
//   a if c else b | or | and | not | == != < <= > >= in, not in | + - | * / // % | - |
//   1, 0.5, 1e-8, 'text', true, null, [a, b], (a), path.to.0, has(path), known(path), min(a, ...), max(a, ...), gcd(a,
//   b), len(a)
//
// Later ones bind tighter; comparisons do not chain. Arithmetic is Python's, with integers of 64 bits. What cannot be
// known (a path, a value of a wrong kind, 1 // 0, an overflow) makes the result unknown, but `false and unknown` is
// false and `true or unknown` is true (Kleene); known(path) tells. No expression crashes, throws while it is evaluated,
// or takes long: there are no loops, and at most 2,000 characters, 64 levels of brackets and 500 values and operators.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lib/expression/value.hpp"

namespace hexad::expression {

// A text that is no expression or no message. what() is "column 3: got '=', wanted '=='", in valid UTF-8 whatever was
// read.
class ParseError : public std::runtime_error {
 public:
  ParseError(size_t column, const std::string& reason)
      : std::runtime_error("column " + std::to_string(column) + ": " + reason), column_(column), reason_(reason) {}

  size_t column() const { return column_; }  // counted from 1, in characters
  const std::string& reason() const { return reason_; }

 private:
  size_t column_;
  std::string reason_;
};

// The value at a path. nullopt: it cannot be known. A key that is absent where it could be is null.
using Lookup = std::function<std::optional<Value>(std::string_view path)>;

struct Program;

// Immutable, cheap to copy, and safe to evaluate from several threads.
class Expression {
 public:
  static Expression parse(std::string_view text);  // throws ParseError

  // nullopt: unknown. Every path is looked up, also where it does not matter; what `lookup` throws passes through.
  std::optional<Value> evaluate(const Lookup& lookup) const;
  // nullopt: unknown, or not a boolean.
  std::optional<bool> holds(const Lookup& lookup) const;

  const std::vector<std::string>& paths() const;  // those of has() and known() too; each once, in the order of the text
  const std::string& text() const;

 private:
  explicit Expression(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

}  // namespace hexad::expression
