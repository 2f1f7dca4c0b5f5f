#include <algorithm>

#include "plugins/environment/math/latex/reader.hpp"
#include "plugins/environment/math/latex/rewrite.hpp"
#include "plugins/environment/math/number/arithmetic.hpp"
#include "plugins/environment/math/number/exact.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

constexpr int kDeepestDerivative = 8;

Expression related(std::string sign, const Expression& left, const Expression& right) {
  return node(Kind::relation, {left, right}, std::move(sign));
}

// A chain goes on from the right side of its last relation.
Expression chained(std::string sign, const Expression& left, const Expression& right) {
  if (left->is(Kind::conjunction)) {
    std::vector<Expression> args = left->args;
    args.push_back(related(std::move(sign), args.back()->args[1], right));
    return node(Kind::conjunction, std::move(args));
  }
  if (left->is(Kind::relation)) return node(Kind::conjunction, {left, related(std::move(sign), left->args[1], right)});
  return related(std::move(sign), left, right);
}

Expression as_set(const Expression& a) {
  if (a->is(Kind::tuple)) return finite_set(a->args);
  if (!a->is_set()) throw Unreadable();
  return a;
}

// "1,234,567.8"
Expression grouped_number(std::string_view source) {
  static const Rewrite pattern(R"(^\s*-?\d{1,3}(,\d{3})+(\.\d+)?\s*$)", "");
  if (!pattern.found_in(source)) return nullptr;
  std::string digits;
  const bool decimal_comma = trimmed(source).starts_with('0');
  for (const char c : trimmed(source)) {
    if (c == ',' && decimal_comma) digits += '.';
    if (c != ',') digits += c;
  }
  auto number = read_number(digits);
  if (!number) throw Unreadable();
  return number;
}

}  // namespace

LatexReader::LatexReader(std::string_view source, bool real, int depth) : source_(source), real_(real), depth_(depth) {
  if (depth > kDeepestDerivative) throw Unreadable();
  auto read = lexemes(source);
  if (!read) throw Unreadable();
  lexemes_ = std::move(*read);
}

Expression LatexReader::read() const {
  const auto tree = parse_tree(lexemes_);
  if (!tree) throw Unreadable();
  const ParseNode& root = tree->children[0];
  if (root.is("set_relation")) return set_relation(root);
  if (root.is("membership")) return membership(root);
  if (auto number = grouped_number(source_)) return number;
  return set_or_tuple(elements(root));
}

Expression LatexReader::set_or_tuple(const Elements& elements) const {
  if (elements.size() == 1) return elements[0].size() == 1 ? elements[0][0] : finite_set(elements[0]);
  const bool single = std::all_of(elements.begin(), elements.end(), [](const auto& some) { return some.size() == 1; });
  std::vector<Expression> args;
  for (const auto& some : elements) args.push_back(single ? some[0] : node(Kind::tuple, some));
  return finite_set(args);
}

LatexReader::Elements LatexReader::elements(const ParseNode& semicolons) const {
  Elements result;
  for (const ParseNode& commas : semicolons.children) {
    if (!commas.is("commas") && !commas.is("plain_commas")) continue;
    auto& some = result.emplace_back();
    for (const ParseNode& child : commas.children) {
      if (child.rule.empty()) continue;
      for (auto& one : element(child)) some.push_back(std::move(one));
    }
  }
  return result;
}

std::vector<Expression> LatexReader::element(const ParseNode& node) const {
  const ParseNode& inner = node.children[0];
  if (inner.is("either_sign")) return either_sign(inner);
  if (inner.is("set_atom")) return {set_atom(inner)};
  return {inner.is("relation") ? relation(inner) : expr(inner)};
}

std::vector<Expression> LatexReader::either_sign(const ParseNode& pair) const {
  const auto minus = [](const Expression& a) {
    return a->is(Kind::rational) ? rational(-a->value) : node(Kind::mul, {rational(-1), a});
  };
  const Expression first = expr(*pair.child("expr"));
  const ParseNode* other = pair.child("expr", 1);
  if (!other) return {minus(first), first};
  const Expression second = expr(*other);
  return {node(Kind::add, {first, second}), node(Kind::add, {first, minus(second)})};
}

Expression LatexReader::membership(const ParseNode& claim) const {
  return related("==", atoms(claim.children[0]), set_or_tuple(elements(claim.children[2])));
}

Expression LatexReader::relation(const ParseNode& chain) const {
  Expression left = expr(chain.children[0]);
  for (size_t i = 1; i + 1 < chain.children.size(); i += 2) {
    const Token sign = chain.children[i].children[0].token;
    const Expression right = expr(chain.children[i + 1]);
    if (sign == Token::approx) {
      // "x ≈ 3" assigns; of "π ≈ 3.14" the exact side counts.
      left = only_symbols(*left) ? right : left;
      continue;
    }
    const char* name = sign == Token::lt                               ? "<"
                       : sign == Token::lte                            ? "<="
                       : sign == Token::gt                             ? ">"
                       : sign == Token::gte                            ? ">="
                       : sign == Token::unequal                        ? "!="
                       : sign == Token::assign || sign == Token::equal ? "=="
                                                                       : nullptr;
    if (!name) throw Unreadable();
    left = chained(name, left, right);
  }
  return left;
}

Expression LatexReader::set_relation(const ParseNode& claims) const {
  Expression left = set_claim(claims.children[0]);
  for (size_t i = 2; i < claims.children.size(); i += 2)
    left = node(Kind::statement, {left, set_claim(claims.children[i])}, "subset");
  return left;
}

Expression LatexReader::set_claim(const ParseNode& claim) const {
  if (claim.children[0].is("set_minus")) return set_operation(claim.children[0]);
  const Expression left = atoms(claim.children[0]), right = set_claim(claim.children[2]);
  if (claim.children[1].is(Token::notin)) return node(Kind::statement, {left, as_set(right)}, "notin");
  return related("==", left, right);
}

Expression LatexReader::set_operation(const ParseNode& operation) const {
  if (operation.is("set_group")) {
    const ParseNode* inner = operation.child("set_minus");
    return inner ? set_operation(*inner) : set_atom(*operation.child("set_atom"));
  }
  Expression left = set_operation(operation.children[0]);
  const Kind kind = operation.is("set_union")   ? Kind::set_union
                    : operation.is("set_minus") ? Kind::complement
                                                : Kind::intersection;
  for (size_t i = 2; i < operation.children.size(); i += 2)
    left = node(kind, {as_set(left), as_set(set_operation(operation.children[i]))});
  return left;
}

Expression LatexReader::set_atom(const ParseNode& atom) const {
  const ParseNode& inner = atom.children[0];
  if (inner.is("interval")) return interval(inner);
  if (inner.is("literal_set")) return literal_set(inner);
  const Elements content = elements(*inner.child("semicolons"));
  if (inner.child(Token::boxed)) return set_or_tuple(content);
  std::vector<Expression> flat;
  for (const auto& some : content) flat.insert(flat.end(), some.begin(), some.end());
  if (inner.is("finite_set")) return finite_set(flat);
  return flat.size() == 1 ? flat[0] : node(Kind::tuple, std::move(flat));
}

// Where the ends stand the wrong way round it was a pair, or an empty set.
Expression LatexReader::interval(const ParseNode& pair) const {
  const auto open = [](Token token) {
    return token == Token::lparen || token == Token::lgroup || token == Token::lparen_visual ||
           token == Token::rparen || token == Token::rgroup || token == Token::rparen_visual;
  };
  bool left_open = open(pair.child("interval_open")->children[0].token);
  bool right_open = open(pair.child("interval_close")->children[0].token);
  const Expression begin = expr(*pair.child("expr")), end = expr(*pair.child("expr", 1));
  const std::optional<int> order = same(*begin, *end) ? std::optional(0) : real_order(*begin, *end);
  if (order && ((left_open && right_open && *order >= 0) || (!left_open && !right_open && *order > 0)))
    return node(Kind::tuple, {begin, end});
  if (order && *order > 0) return node(Kind::named_set, {}, "empty");
  if (order && *order == 0) {
    return left_open || right_open ? node(Kind::named_set, {}, "empty") : finite_set({begin});
  }
  for (const Expression& side : {begin, end}) {
    if (not_real(*side)) throw Unreadable();
  }
  left_open |= begin->is_constant("-oo");
  right_open |= end->is_constant("oo");
  auto result = std::make_shared<Node>(*node(Kind::interval, {begin, end}));
  result->left_open = left_open;
  result->right_open = right_open;
  return result;
}

Expression LatexReader::literal_set(const ParseNode& set) const {
  const ParseNode* named = set.child(Token::named_set);
  if (!named) return node(Kind::named_set, {}, "empty");
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"N", "ℕ"}, {"Z", "ℤ"}, {"Q", "ℚ"}, {"R", "ℝ"}, {"C", "ℂ"}};
  for (const auto& [letter, sign] : kNames) {
    if (text(*named) == sign || text(*named) == "\\mathbb{" + std::string(letter) + "}")
      return node(Kind::named_set, {}, std::string(letter));
  }
  throw Unreadable();
}

}  // namespace hexad::math
