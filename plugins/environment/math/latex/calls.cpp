#include <algorithm>

#include "plugins/environment/math/latex/reader.hpp"

namespace hexad::math {
namespace {

// arcsin, arsinh, arcsinh and so on by one name each.
std::string one_name(std::string name) {
  for (const std::string_view prefix : {"arc", "ar"}) {
    const std::string rest = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
    for (const std::string_view known : {"sin", "cos", "tan", "csc", "sec", "cot", "sinh", "cosh", "tanh"}) {
      if (rest == known) return "a" + rest;
    }
  }
  return name;
}

bool inverts(std::string_view name) {
  for (const std::string_view known : {"sin", "cos", "tan", "csc", "sec", "cot", "sinh", "cosh", "tanh"}) {
    if (name == known) return true;
  }
  return false;
}

Expression trace(const Expression& matrix) {
  Expression total;
  for (size_t i = 0; i < std::min(matrix->rows, matrix->columns); ++i) {
    const Expression& cell = matrix->args[i * matrix->columns + i];
    total = total ? node(Kind::add, {total, cell}) : cell;
  }
  return total;
}

}  // namespace

Expression LatexReader::func(const ParseNode& choice) const {
  const ParseNode& inner = choice.children[0];
  if (inner.is("call_one")) return call_one(inner);
  if (inner.is("call_many")) return call_many(inner);
  if (inner.is("call_named")) return call_named(inner);
  if (inner.is("integrate")) return integrate(inner);
  if (inner.is("series")) return series(inner);
  if (inner.is("limit")) return limit(inner);
  if (inner.is("root")) {
    const ParseNode* second = inner.child("expr", 1);
    if (!second) return power(expr(*inner.child("expr")), rational(Rational(1) / 2));
    const Expression degree = expr(*inner.child("expr"));
    return power(expr(*second), degree->is_integer() ? quotient(rational(1), degree) : power(degree, rational(-1)));
  }
  const ParseNode* sup = inner.child("supexpr");  // e, e^x
  const Expression exponent = sup ? script(*sup) : rational(1);
  if (exponent->is(Kind::rational) && exponent->value == 0) return rational(1);
  if (exponent->is(Kind::rational) && exponent->value == 1) return constant("E");
  return node(Kind::function, {exponent}, "exp");
}

Expression LatexReader::call_one(const ParseNode& call) const {
  const ParseNode& token = *call.child("one_name");
  const ParseNode* parenthesised = call.child("expr");
  const Expression argument = parenthesised ? expr(*parenthesised) : mp(*call.child("mp_nofunc"));
  std::string name(text(token.children.size() > 1 ? token.children[2] : token.children[0]));
  if (name.starts_with('\\')) name.erase(0, 1);
  name = one_name(name);
  const ParseNode *sub = call.child("subexpr"), *sup = call.child("supexpr");
  Expression exponent = sup ? script(*sup) : nullptr;
  if (exponent && exponent->is(Kind::rational) && exponent->value == 0) exponent = nullptr;
  if (exponent && exponent->is(Kind::rational) && exponent->value == -1 && inverts(name)) {
    name = "a" + name;
    exponent = nullptr;
  }
  Expression result;
  if (name == "log" || name == "ln") {
    const Expression base = sub ? script(*sub) : name == "log" ? rational(10) : constant("E");
    result = node(Kind::function, {argument, base}, "log");
  } else if (name == "det" || name == "rank" || name == "trace" || name == "tr") {
    // Only of a matrix that is written out.
    if (!argument->is(Kind::matrix) || (name != "trace" && name != "tr")) throw Unreadable();
    result = trace(argument);
  } else if (name == "Gamma" || name == "gamma") {
    result = node(Kind::function, {argument}, "gamma");
  } else {
    result = node(Kind::function, {argument}, name);
  }
  return exponent ? power(result, exponent) : result;
}

void LatexReader::collect(const ParseNode& args, std::vector<Expression>& into) const {
  for (const ParseNode& child : args.children) {
    if (child.is("expr")) into.push_back(expr(child));
    if (child.is("atom")) into.push_back(atom(child));
    if (child.is("args") || child.is("many_args")) collect(child, into);
  }
}

Expression LatexReader::call_many(const ParseNode& call) const {
  const ParseNode* list = call.child("many_args");
  if (!list) throw Unreadable();
  std::vector<Expression> args;
  collect(*list, args);
  const ParseNode& token = *call.child("many_name");
  std::string name(text(token.children.size() > 1 ? token.children[2] : token.children[0]));
  if (name.starts_with('\\')) name.erase(0, 1);
  if (name != "gcd" && name != "lcm" && name != "max" && name != "min") throw Unreadable();
  const Expression result = node(Kind::function, std::move(args), name);
  const ParseNode* sup = call.child("supexpr");
  return sup ? power(result, script(*sup)) : result;
}

Expression LatexReader::call_named(const ParseNode& call) const {
  std::vector<Expression> args;
  collect(*call.child("call_args"), args);
  const Expression result = node(Kind::applied, std::move(args), joined_text(*call.child("named_nopower")));
  const ParseNode* sup = call.child("supexpr");
  return sup ? power(result, script(*sup)) : result;
}

Expression LatexReader::integrate(const ParseNode& call) const {
  Expression body = rational(1);
  if (const ParseNode* inner = call.child("expr")) body = expr(*inner);
  if (const ParseNode* inner = call.child("fraction")) body = fraction(*inner);
  const ParseNode* token = call.child(Token::differential);
  std::vector<Expression> args{body, token ? differential(text(*token)) : symbol("x", real_)};
  if (const ParseNode* sub = call.child("subexpr")) {
    args.push_back(script(*sub));
    args.push_back(script(*call.child("supexpr")));
  }
  return node(Kind::function, std::move(args), "integral");
}

Expression LatexReader::series(const ParseNode& call) const {
  const ParseNode& from = *call.child("series_from")->child("equality");
  const Expression variable = expr(*from.child("expr"));
  if (!variable->is(Kind::symbol)) throw Unreadable();
  return node(Kind::function,
              {mp(*call.child("mp")), variable, expr(*from.child("expr", 1)), script(*call.child("supexpr"))},
              call.child(Token::sum) ? "sum" : "product");
}

Expression LatexReader::limit(const ParseNode& call) const {
  const ParseNode& from = *call.child("limit_from");
  const bool below = from.child(Token::sub) != nullptr;
  const Expression variable = letter_symbol(std::string(text(from.children[2])));
  return node(Kind::function, {mp(*call.child("mp")), variable, expr(*from.child("expr"))},
              below ? "limit-" : "limit+");
}

}  // namespace hexad::math
