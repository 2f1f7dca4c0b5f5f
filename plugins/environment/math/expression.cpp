#include "plugins/environment/math/expression.hpp"

#include <algorithm>

namespace hexad::math {
namespace {

std::shared_ptr<Node> made(Kind kind) {
  auto result = std::make_shared<Node>();
  result->kind = kind;
  return result;
}

Expression joined(Kind kind, const Expression& a, const Expression& b) {
  std::vector<Expression> args;
  for (const Expression& side : {a, b}) {
    if (side->is(kind)) {
      args.insert(args.end(), side->args.begin(), side->args.end());
    } else {
      args.push_back(side);
    }
  }
  return node(kind, std::move(args));
}

// The same members in any order; neither list repeats one.
bool same_members(const std::vector<Expression>& a, const std::vector<Expression>& b) {
  return std::all_of(a.begin(), a.end(), [&](const Expression& one) {
    return std::any_of(b.begin(), b.end(), [&](const Expression& other) { return same(*one, *other); });
  });
}

}  // namespace

bool Node::is_number() const {
  return kind == Kind::rational || kind == Kind::decimal ||
         (kind == Kind::constant && (name == "oo" || name == "-oo" || name == "nan"));
}
bool Node::is_integer() const { return kind == Kind::rational && denominator(value) == 1; }
bool Node::is_set() const {
  return kind == Kind::finite_set || kind == Kind::interval || kind == Kind::set_union || kind == Kind::intersection ||
         kind == Kind::complement || kind == Kind::named_set;
}

Expression rational(Rational value) {
  auto result = made(Kind::rational);
  result->value = std::move(value);
  return result;
}
Expression decimal(Rational value) {
  auto result = made(Kind::decimal);
  result->value = std::move(value);
  return result;
}
Expression symbol(std::string name, bool real) {
  auto result = made(Kind::symbol);
  result->name = std::move(name);
  result->real = real;
  return result;
}
Expression constant(std::string name) {
  auto result = made(Kind::constant);
  result->name = std::move(name);
  return result;
}
Expression node(Kind kind, std::vector<Expression> args, std::string name) {
  auto result = made(kind);
  result->args = std::move(args);
  result->name = std::move(name);
  return result;
}

Expression sum(const Expression& a, const Expression& b) { return joined(Kind::add, a, b); }
Expression product(const Expression& a, const Expression& b) { return joined(Kind::mul, a, b); }
Expression power(const Expression& base, const Expression& exponent) { return node(Kind::power, {base, exponent}); }

Expression negated(const Expression& a) {
  if (a->is(Kind::rational)) return rational(-a->value);
  if (a->is(Kind::decimal)) return decimal(-a->value);
  if (a->is_constant("oo")) return constant("-oo");
  if (a->is_constant("-oo")) return constant("oo");
  return product(rational(-1), a);
}

Expression quotient(const Expression& a, const Expression& b) {
  if (!a->is_integer() || !b->is_integer()) return node(Kind::mul, {a, power(b, rational(-1))});
  if (b->value == 0) return constant(a->value == 0 ? "nan" : "zoo");
  return rational(a->value / b->value);
}

Expression percentage(const Expression& a) { return node(Kind::mul, {a, made(Kind::hundredth)}); }

Expression finite_set(const std::vector<Expression>& args) {
  std::vector<Expression> distinct;
  for (const Expression& arg : args) {
    const bool known =
        std::any_of(distinct.begin(), distinct.end(), [&](const auto& other) { return same(*arg, *other); });
    if (!known) distinct.push_back(arg);
  }
  return node(Kind::finite_set, std::move(distinct));
}

bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.value != b.value || a.name != b.name || a.args.size() != b.args.size()) return false;
  if (a.is(Kind::symbol) && a.real != b.real) return false;
  if (a.left_open != b.left_open || a.right_open != b.right_open || a.columns != b.columns) return false;
  if (a.is(Kind::finite_set) || a.is(Kind::conjunction)) return same_members(a.args, b.args);
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (!same(*a.args[i], *b.args[i])) return false;
  }
  return true;
}

bool has_matrix(const Node& a) {
  return a.is(Kind::matrix) ||
         std::any_of(a.args.begin(), a.args.end(), [](const auto& arg) { return has_matrix(*arg); });
}

bool only_symbols(const Node& a) {
  if (a.is(Kind::symbol)) return true;
  const auto all = [](const std::vector<Expression>& args) {
    return std::all_of(args.begin(), args.end(), [](const auto& arg) { return only_symbols(*arg); });
  };
  if (a.is(Kind::power) && a.args[1]->is(Kind::rational) && a.args[1]->value == -1)
    return a.args[0]->is(Kind::symbol) || all(a.args[0]->args);
  return !a.args.empty() && all(a.args);
}

}  // namespace hexad::math
