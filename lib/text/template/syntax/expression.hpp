// Expressions of a parsed template.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/text/template/value/value.hpp"

namespace hexad::text::jinja {

struct Expression {
  explicit Expression(int line) : line(line) {}
  virtual ~Expression() = default;
  // Evaluates within the evaluator's limits and notes the line for messages.
  Value evaluate(Evaluator& evaluator) const;

  const int line;

 private:
  virtual Value compute(Evaluator& evaluator) const = 0;
};
using ExpressionPtr = std::unique_ptr<const Expression>;

// Constants are kept apart from the values of a rendering, which are counted against its budget.
struct Literal : Expression {
  Literal(int line, Value value) : Expression(line), value(std::move(value)) {}
  Value compute(Evaluator&) const override { return value; }
  Value value;
};

struct Name : Expression {
  Name(int line, std::string name) : Expression(line), name(std::move(name)) {}
  Value compute(Evaluator& evaluator) const override;
  std::string name;
};

// [a, b] or (a, b)
struct Display : Expression {
  Display(int line, SequenceKind kind, std::vector<ExpressionPtr> items)
      : Expression(line), kind(kind), items(std::move(items)) {}
  Value compute(Evaluator& evaluator) const override;
  SequenceKind kind;
  std::vector<ExpressionPtr> items;
};

struct DictDisplay : Expression {
  explicit DictDisplay(int line) : Expression(line) {}
  Value compute(Evaluator& evaluator) const override;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};

struct Attribute : Expression {
  Attribute(int line, ExpressionPtr object, std::string name)
      : Expression(line), object(std::move(object)), name(std::move(name)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr object;
  std::string name;
};

struct Subscript : Expression {
  Subscript(int line, ExpressionPtr object, ExpressionPtr index)
      : Expression(line), object(std::move(object)), index(std::move(index)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr object, index;
};

// object[start:stop:step]; absent parts are null.
struct Slice : Expression {
  Slice(int line, ExpressionPtr object) : Expression(line), object(std::move(object)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr object, start, stop, step;
};

// The arguments of a call, filter or test: a, *a, name=a, **a.
struct ArgumentList {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr rest, named_rest;
  Arguments evaluate(Evaluator& evaluator) const;
};

struct Call : Expression {
  Call(int line, ExpressionPtr callee, ArgumentList arguments)
      : Expression(line), callee(std::move(callee)), arguments(std::move(arguments)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr callee;
  ArgumentList arguments;
};

struct FilterCall : Expression {
  FilterCall(int line, ExpressionPtr input, std::string name, ArgumentList arguments)
      : Expression(line), input(std::move(input)), name(std::move(name)), arguments(std::move(arguments)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr input;
  std::string name;
  ArgumentList arguments;
};

struct TestCall : Expression {
  TestCall(int line, ExpressionPtr input, std::string name, ArgumentList arguments)
      : Expression(line), input(std::move(input)), name(std::move(name)), arguments(std::move(arguments)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr input;
  std::string name;
  ArgumentList arguments;
};

enum class UnaryOp { negate, plus, logical_not };

struct Unary : Expression {
  Unary(int line, UnaryOp op, ExpressionPtr operand) : Expression(line), op(op), operand(std::move(operand)) {}
  Value compute(Evaluator& evaluator) const override;
  UnaryOp op;
  ExpressionPtr operand;
};

// Arithmetic; `op` is its symbol.
struct Binary : Expression {
  Binary(int line, std::string op, ExpressionPtr left, ExpressionPtr right)
      : Expression(line), op(std::move(op)), left(std::move(left)), right(std::move(right)) {}
  Value compute(Evaluator& evaluator) const override;
  std::string op;
  ExpressionPtr left, right;
};

// `and`, `or`: the value of the operand that decided.
struct Logical : Expression {
  Logical(int line, bool is_and, ExpressionPtr left, ExpressionPtr right)
      : Expression(line), is_and(is_and), left(std::move(left)), right(std::move(right)) {}
  Value compute(Evaluator& evaluator) const override;
  bool is_and;
  ExpressionPtr left, right;
};

// a < b <= c, `in`, `not in`.
struct Comparison : Expression {
  Comparison(int line, ExpressionPtr first) : Expression(line), first(std::move(first)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr first;
  std::vector<std::pair<std::string, ExpressionPtr>> rest;
};

// a ~ b ~ c
struct Concatenation : Expression {
  Concatenation(int line, std::vector<ExpressionPtr> parts) : Expression(line), parts(std::move(parts)) {}
  Value compute(Evaluator& evaluator) const override;
  std::vector<ExpressionPtr> parts;
};

// a if condition else b; without else the value is undefined.
struct Conditional : Expression {
  Conditional(int line, ExpressionPtr condition, ExpressionPtr yes, ExpressionPtr no)
      : Expression(line), condition(std::move(condition)), yes(std::move(yes)), no(std::move(no)) {}
  Value compute(Evaluator& evaluator) const override;
  ExpressionPtr condition, yes, no;
};

}  // namespace hexad::text::jinja
