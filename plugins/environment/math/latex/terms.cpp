#include <algorithm>

#include "plugins/environment/math/latex/reader.hpp"
#include "plugins/environment/math/number/arithmetic.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

constexpr size_t kLargestDeterminant = 5;

// The name of a Greek letter by its command or sign; other text as it is.
std::string greek_name(std::string_view text) {
  static constexpr std::string_view kSigns[] = {
      "α alpha",      "β beta",     "γ gamma",  "Γ Gamma",   "δ delta",   "Δ Delta",    "ε epsilon",
      "ϵ varepsilon", "ζ zeta",     "η eta",    "θ theta",   "Θ Theta",   "ϑ vartheta", "ι iota",
      "κ kappa",      "λ lambda",   "Λ Lambda", "μ mu",      "ν nu",      "ξ xi",       "Ξ Xi",
      "ο omicron",    "π pi",       "Π Pi",     "ϖ varpi",   "ρ rho",     "ϱ varrho",   "σ sigma",
      "Σ Sigma",      "ς varsigma", "τ tau",    "υ upsilon", "Υ Upsilon", "φ phi",      "Φ Phi",
      "ϕ varphi",     "χ chi",      "ψ psi",    "Ψ Psi",     "ω omega",   "Ω Omega"};
  for (const std::string_view sign : kSigns) {
    if (sign.substr(0, sign.find(' ')) == text) return std::string(sign.substr(sign.find(' ') + 1));
  }
  return std::string(text.starts_with('\\') ? text.substr(1) : text);
}

// \text{..} is its letters; other accents keep their name.
std::string accented(std::string_view source) {
  const size_t open = source.find('{');
  std::string_view name = source.substr(1, open - 1);
  std::string inner(source.substr(open + 1, source.size() - open - 2));
  std::erase(inner, ' ');
  if (name.find("text") != name.npos || name.find("mbox") != name.npos) {
    std::erase(inner, '(');
    std::erase(inner, ')');
    return inner;
  }
  if (name == "overline") name = "bar";
  if (name == "overrightarrow") name = "vec";
  if (name == "widetilde") name = "tilde";
  if (name.find("math") != name.npos) name = "math";
  return std::string(name) + "{" + inner + "}";
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

// By the first row.
Expression determinant(const std::vector<Expression>& cells, size_t size) {
  if (size == 1) return cells[0];
  Expression total;
  for (size_t column = 0; column < size; ++column) {
    std::vector<Expression> minor;
    for (size_t i = size; i < cells.size(); ++i) {
      if (i % size != column) minor.push_back(cells[i]);
    }
    Expression term = node(Kind::mul, {cells[column], determinant(minor, size - 1)});
    if (column % 2) term = node(Kind::mul, {rational(-1), term});
    total = total ? node(Kind::add, {total, term}) : term;
  }
  return total;
}

}  // namespace

Expression LatexReader::expr(const ParseNode& terms) const {
  Expression left = mp(terms.children[0]);
  for (size_t i = 1; i + 1 < terms.children.size(); i += 2) {
    const Expression right = mp(terms.children[i + 1]);
    left = sum(left, terms.children[i].is(Token::add) ? right : negated(right));
  }
  return left;
}

Expression LatexReader::mp(const ParseNode& product_node) const {
  Expression left = unary(product_node.children[0]);
  for (size_t i = 1; i + 1 < product_node.children.size(); i += 2) {
    const Token sign = product_node.children[i].children[0].token;
    const Expression right = unary(product_node.children[i + 1]);
    if (sign == Token::mul || sign == Token::times || sign == Token::cdot) {
      left = product(left, right);
    } else if (sign == Token::mod) {
      left = node(Kind::function, {left, right}, "mod");
    } else {
      left = quotient(left, right);
    }
  }
  return left;
}

Expression LatexReader::unary(const ParseNode& signed_node) const {
  const ParseNode* inner = signed_node.child("unary");
  if (!inner) inner = signed_node.child("unary_nofunc");
  if (inner) return signed_node.children[0].is(Token::add) ? unary(*inner) : negated(unary(*inner));
  std::vector<const ParseNode*> postfixes;
  for (const ParseNode& child : signed_node.children) postfixes.push_back(&child);
  return factors(postfixes, 0);
}

// Side by side is a product; a whole number before a fraction (or number) is a mixed fraction. "d/dx" takes the rest.
Expression LatexReader::factors(const std::vector<const ParseNode*>& postfixes, size_t from) const {
  std::vector<Expression> parts;
  for (size_t i = from; i < postfixes.size(); ++i) parts.push_back(postfix(*postfixes[i]));
  Expression right = parts.back();
  for (size_t i = parts.size() - 1; i-- > 0;) {
    const Expression& left = parts[i];
    if (left->is_integer() && right->is(Kind::rational) && right->value > 0) {
      right = rational(left->value < 0 ? Rational(left->value - right->value) : Rational(left->value + right->value));
    } else if (left->is(Kind::statement) && left->name == "d/d") {
      right = node(Kind::function, {right, left->args[0]}, "derivative");
    } else {
      right = product(left, right);
    }
  }
  if (right->is(Kind::statement)) throw Unreadable();
  return right;
}

Expression LatexReader::postfix(const ParseNode& marked) const {
  Expression result = exp(marked.children[0]);
  for (size_t i = 1; i < marked.children.size(); ++i) {
    const ParseNode& sign = marked.children[i].children[0];
    if (sign.is("eval_at")) throw Unreadable();
    if (sign.is(Token::bang)) result = node(Kind::function, {result}, "factorial");
    if (sign.is(Token::transposed) && result->is(Kind::matrix)) {
      auto turned = std::make_shared<Node>(*result);
      std::swap(turned->rows, turned->columns);
      for (size_t k = 0; k < turned->args.size(); ++k)
        turned->args[k] = result->args[k % turned->columns * result->columns + k / turned->columns];
      result = turned;
    }
  }
  return result;
}

Expression LatexReader::exp(const ParseNode& powers) const {
  Expression base = comp(powers.children[0]);
  for (size_t i = 1; i < powers.children.size(); ++i) {
    if (base->is(Kind::statement)) throw Unreadable();
    base = power(base, script(powers.children[i]));
  }
  return base;
}

Expression LatexReader::script(const ParseNode& mark) const {
  if (const ParseNode* inner = mark.child("expr")) return expr(*inner);
  if (const ParseNode* inner = mark.child("atom")) return atom(*inner);
  throw Unreadable();
}

Expression LatexReader::comp(const ParseNode& choice) const {
  const ParseNode& inner = choice.children[0];
  if (inner.is("atom")) return atom(inner);
  if (inner.is("func")) return func(inner);
  if (inner.is("fraction")) return fraction(inner);
  if (inner.is("matrix") || inner.is("det")) {
    const Expression cells = matrix(inner);
    if (inner.is("matrix")) return cells;
    if (cells->rows != cells->columns || cells->rows > kLargestDeterminant) throw Unreadable();
    return determinant(cells->args, cells->rows);
  }
  if (inner.is("dotted")) throw Unreadable();
  const Expression body = expr(*inner.child("expr"));
  if (inner.is("absolute")) return node(Kind::function, {body}, "abs");
  if (inner.is("floored")) return node(Kind::function, {body}, "floor");
  if (inner.is("ceiled")) return node(Kind::function, {body}, "ceil");
  if (inner.is("binomial")) return node(Kind::function, {body, expr(*inner.child("expr", 1))}, "binomial");
  if (inner.is("normed")) {
    if (!body->is(Kind::matrix)) throw Unreadable();
    std::vector<Expression> squares;
    for (const Expression& cell : body->args)
      squares.push_back(power(node(Kind::function, {cell}, "abs"), rational(2)));
    return power(node(Kind::add, std::move(squares)), rational(Rational(1) / 2));
  }
  return body;  // groups
}

Expression LatexReader::fraction(const ParseNode& over) const {
  const ParseNode &upper = *over.child("expr"), &lower = *over.child("expr", 1);
  if (lower.end == lower.begin + 1 && lexemes_[lower.begin].token == Token::differential) {
    const Expression variable = differential(lexemes_[lower.begin].text);
    if (upper.end == upper.begin + 1 && lexemes_[upper.begin].text == "d")
      return node(Kind::statement, {variable}, "d/d");
    const char* begin = lexemes_[upper.begin].text.data();
    const std::string_view last = lexemes_[upper.end - 1].text;
    if (*begin == 'd') {
      const std::string_view rest(begin + 1, static_cast<size_t>(last.data() + last.size() - begin - 1));
      return node(Kind::function, {LatexReader(rest, real_, depth_ + 1).read(), variable}, "derivative");
    }
  }
  return quotient(expr(upper), expr(lower));
}

Expression LatexReader::matrix(const ParseNode& rows) const {
  auto result = std::make_shared<Node>();
  result->kind = Kind::matrix;
  for (const ParseNode& row : rows.children) {
    if (!row.is("matrix_row")) continue;
    size_t columns = 0;
    for (const ParseNode& cell : row.children) {
      if (!cell.is("expr")) continue;
      result->args.push_back(expr(cell));
      ++columns;
    }
    if (result->rows++ && columns != result->columns) throw Unreadable();
    result->columns = columns;
  }
  return result;
}

Expression LatexReader::atom(const ParseNode& choice) const {
  const ParseNode& inner = choice.children[0];
  if (inner.is("named")) return named(inner);
  if (inner.is("plain_number") || inner.is(Token::scientific)) {
    const auto number = read_number(text(inner.is(Token::scientific) ? inner : inner.children[0]));
    if (!number) throw Unreadable();
    return number;
  }
  if (inner.is(Token::percent_number)) {
    const std::string_view source = text(inner);
    const auto number = read_number(source.substr(0, source.find_first_not_of("0123456789.")));
    if (!number) throw Unreadable();
    return percentage(number);
  }
  if (inner.is(Token::notation_e)) return symbol("e", real_);
  if (inner.is(Token::gamma)) return constant("EulerGamma");
  if (inner.is(Token::differential)) return symbol("d" + differential(text(inner))->name, real_);
  if (text(inner).find("\\infty") == std::string_view::npos) throw Unreadable();
  return constant("oo");
}

Expression LatexReader::differential(std::string_view text) const {
  text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (text.starts_with('\\')) text.remove_prefix(1);
  return symbol(std::string(text), real_);
}

std::string LatexReader::joined_text(const ParseNode& node) const {
  std::string result;
  for (size_t i = node.begin; i < node.end; ++i) result += lexemes_[i].text;
  return result;
}

// The letters with their subscript.
std::string LatexReader::letters(const ParseNode& node) const {
  const ParseNode& token = node.child("name")->children[0];
  std::string result(without_blanks(text(token)));
  if (token.is(Token::accent)) result = accented(text(token));
  if (const ParseNode* sub = node.child("subexpr")) {
    const ParseNode& inner = sub->children.size() > 2 ? sub->children[2] : sub->children[1];
    const std::string index(without_blanks(joined_text(inner)));
    size_t characters = 0;
    for (const char c : index) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    result = std::string(without_blanks(result)) + (characters > 1 ? "_{" + index + "}" : "_" + index);
  }
  return std::string(without_blanks(result));
}

Expression LatexReader::letter_symbol(const std::string& text) const {
  const std::string name = greek_name(text);
  for (const std::string& known : {name, lowercase(name)}) {
    if (known == "pi") return constant("pi");
    if (known == "gamma" || known == "Gamma") return constant("EulerGamma");
  }
  return symbol(lowercase(name), real_);
}

Expression LatexReader::named(const ParseNode& node) const {
  const ParseNode& token = node.child("name")->children[0];
  if (token.is(Token::letter) && text(token) == "I") return constant("I");
  const Expression base = letter_symbol(letters(node));
  const ParseNode* sup = node.child("supexpr");
  return sup ? power(base, script(*sup)) : base;
}

Expression LatexReader::atoms(const ParseNode& list) const {
  std::vector<Expression> all;
  for (const ParseNode& child : list.children) {
    if (child.is("named")) all.push_back(named(child));
  }
  return all.size() == 1 ? all[0] : node(Kind::tuple, std::move(all));
}

}  // namespace hexad::math
