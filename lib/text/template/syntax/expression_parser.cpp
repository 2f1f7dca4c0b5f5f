#include <algorithm>

#include "lib/text/template/fault.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/syntax/parser.hpp"
#include "lib/text/template/value/python_text.hpp"

namespace hexad::text::jinja {
namespace {

constexpr int max_parser_depth = 150;
constexpr int max_chain = 250;  // a + b + c ...: each operator nests the tree one deeper

template <typename Node, typename... Args>
ExpressionPtr node(Args&&... args) {
  return std::make_unique<const Node>(std::forward<Args>(args)...);
}

Value constant_text(std::string bytes) { return std::make_shared<const Text>(Text{std::move(bytes)}); }

Value integer_of(const Token& token, int base) {
  std::optional<Int> value;
  try {
    value = parse_integer(token.text, base);
  } catch (const Fault& error) {
    throw SyntaxFault(token.line, error.what());
  }
  if (!value) throw SyntaxFault(token.line, fmt::format("'{}' is not a number", token.text));
  return *value;
}

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (parser.depth_ >= max_parser_depth) {
    throw SyntaxFault(parser.tokens_.line(), fmt::format("nested too deeply (more than {} levels)", max_parser_depth));
  }
  ++parser.depth_;
}

void ExpressionParser::count_chain(int& length) const {
  if (++length > max_chain) {
    throw SyntaxFault(tokens_.line(), fmt::format("an expression with more than {} operators in a row", max_chain));
  }
}

ExpressionPtr ExpressionParser::parse_expression(bool with_conditional) {
  const Level level(*this);
  const auto unknown_before = static_cast<std::ptrdiff_t>(unknown_.size());
  ExpressionPtr expression = parse_or();
  int chain = 0;
  while (with_conditional && tokens_.at_name("if")) {
    const int line = tokens_.next().line;
    count_chain(chain);
    ExpressionPtr condition = parse_or();
    unknown_.erase(unknown_.begin() + unknown_before, unknown_.end());
    ++conditional_depth_;
    ExpressionPtr no = tokens_.skip_name("else") ? parse_expression() : nullptr;
    --conditional_depth_;
    expression = node<Conditional>(line, std::move(condition), std::move(expression), std::move(no));
  }
  return expression;
}

ExpressionPtr ExpressionParser::parse_tuple(bool with_conditional) {
  const int line = tokens_.line();
  std::vector<ExpressionPtr> items;
  bool comma = false;
  const auto ended = [&] {
    return tokens_.at(TokenKind::print_end) || tokens_.at(TokenKind::block_end) || tokens_.at_symbol(")") ||
           tokens_.at_name("recursive") || tokens_.at(TokenKind::end);
  };
  do {
    if (comma && ended()) break;
    items.push_back(parse_expression(with_conditional));
    if (!tokens_.at_symbol(",")) break;
    comma = tokens_.skip_symbol(",");
  } while (true);
  return comma ? node<Display>(line, SequenceKind::tuple, std::move(items)) : std::move(items.front());
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  for (int chain = 0; tokens_.at_name("or"); count_chain(chain)) {
    const int line = tokens_.next().line;
    ExpressionPtr right = parse_and();
    left = node<Logical>(line, false, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  for (int chain = 0; tokens_.at_name("and"); count_chain(chain)) {
    const int line = tokens_.next().line;
    ExpressionPtr right = parse_not();
    left = node<Logical>(line, true, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.at_name("not")) return parse_comparison();
  const Level level(*this);
  const int line = tokens_.next().line;
  return node<Unary>(line, UnaryOp::logical_not, parse_not());
}

ExpressionPtr ExpressionParser::parse_comparison() {
  const int line = tokens_.line();
  ExpressionPtr first = parse_sum();
  std::vector<std::pair<std::string, ExpressionPtr>> rest;
  for (;;) {
    std::string op;
    for (const char* symbol : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (op.empty() && tokens_.skip_symbol(symbol)) op = symbol;
    }
    if (op.empty() && tokens_.skip_name("in")) op = "in";
    if (op.empty() && tokens_.at_name("not") && tokens_.peek(1).kind == TokenKind::name &&
        tokens_.peek(1).text == "in") {
      tokens_.next(), tokens_.next();
      op = "not in";
    }
    if (op.empty()) break;
    rest.emplace_back(std::move(op), parse_sum());
  }
  if (rest.empty()) return first;
  auto comparison = std::make_unique<Comparison>(line, std::move(first));
  comparison->rest = std::move(rest);
  return comparison;
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  for (int chain = 0; tokens_.at_symbol("+") || tokens_.at_symbol("-"); count_chain(chain)) {
    const Token op = tokens_.next();
    ExpressionPtr right = parse_concatenation();
    left = node<Binary>(op.line, op.text, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const int line = tokens_.line();
  std::vector<ExpressionPtr> parts;
  parts.push_back(parse_product());
  while (tokens_.skip_symbol("~")) parts.push_back(parse_product());
  return parts.size() == 1 ? std::move(parts.front()) : node<Concatenation>(line, std::move(parts));
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr left = parse_power();
  const auto at_operator = [&] {
    return tokens_.at_symbol("*") || tokens_.at_symbol("/") || tokens_.at_symbol("//") || tokens_.at_symbol("%");
  };
  for (int chain = 0; at_operator(); count_chain(chain)) {
    const Token op = tokens_.next();
    ExpressionPtr right = parse_power();
    left = node<Binary>(op.line, op.text, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary();
  for (int chain = 0; tokens_.at_symbol("**"); count_chain(chain)) {
    const int line = tokens_.next().line;
    ExpressionPtr right = parse_unary();
    left = node<Binary>(line, "**", std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  const Level level(*this);
  const int line = tokens_.line();
  ExpressionPtr expression;
  if (tokens_.skip_symbol("-")) {
    expression = node<Unary>(line, UnaryOp::negate, parse_unary(false));
  } else if (tokens_.skip_symbol("+")) {
    expression = node<Unary>(line, UnaryOp::plus, parse_unary(false));
  } else {
    expression = parse_primary();
  }
  expression = parse_postfix(std::move(expression));
  return with_filters ? parse_filters(std::move(expression)) : std::move(expression);
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr expression) {
  for (int chain = 0;; count_chain(chain)) {
    const int line = tokens_.line();
    if (tokens_.skip_symbol(".")) {
      if (tokens_.at(TokenKind::integer)) {
        Value index = integer_of(tokens_.next(), 10);
        expression = node<Subscript>(line, std::move(expression), node<Literal>(line, std::move(index)));
      } else {
        expression = node<Attribute>(line, std::move(expression), tokens_.expect_any_name("a name after '.'"));
      }
    } else if (tokens_.at_symbol("[")) {
      expression = parse_subscript(std::move(expression));
    } else if (tokens_.at_symbol("(")) {
      ArgumentList arguments = parse_arguments();
      expression = node<Call>(line, std::move(expression), std::move(arguments));
    } else {
      return expression;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr expression) {
  for (int chain = 0;; count_chain(chain)) {
    const int line = tokens_.line();
    if (tokens_.skip_symbol("|")) {
      auto [name, arguments] = parse_filter();
      expression = node<FilterCall>(line, std::move(expression), std::move(name), std::move(arguments));
    } else if (tokens_.skip_name("is")) {
      expression = parse_test(std::move(expression));
    } else if (tokens_.at_symbol("(")) {
      ArgumentList arguments = parse_arguments();
      expression = node<Call>(line, std::move(expression), std::move(arguments));
    } else {
      return expression;
    }
  }
}

std::pair<std::string, ArgumentList> ExpressionParser::parse_filter() {
  std::string name = tokens_.expect_any_name("the name of a filter");
  require_known(name, true);
  return {std::move(name), tokens_.at_symbol("(") ? parse_arguments() : ArgumentList()};
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr expression) {
  const int line = tokens_.line();
  const bool negated = tokens_.skip_name("not");
  // The comparisons have tests of their own: `select('==', 1)`; after `is` only names occur.
  std::string name = tokens_.expect_any_name("the name of a test");
  require_known(name, false);
  ArgumentList arguments;
  const Token& following = tokens_.peek();
  const bool is_operand = following.kind == TokenKind::text || following.kind == TokenKind::integer ||
                          following.kind == TokenKind::real || tokens_.at_symbol("[") || tokens_.at_symbol("{") ||
                          (following.kind == TokenKind::name && following.text != "else" && following.text != "or" &&
                           following.text != "and" && following.text != "if" && following.text != "is" &&
                           following.text != "in" && following.text != "not");
  if (tokens_.at_symbol("(")) {
    arguments = parse_arguments();
  } else if (is_operand) {
    arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  ExpressionPtr test = node<TestCall>(line, std::move(expression), std::move(name), std::move(arguments));
  return negated ? node<Unary>(line, UnaryOp::logical_not, std::move(test)) : std::move(test);
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const int line = tokens_.line();
  tokens_.expect_symbol("[");
  const auto at_end = [&] { return tokens_.at_symbol(":") || tokens_.at_symbol("]"); };
  ExpressionPtr start = at_end() ? nullptr : parse_expression();
  if (tokens_.at_symbol(",")) throw SyntaxFault(line, "several indices in one [] are not supported");
  if (!tokens_.at_symbol(":")) {
    if (!start) tokens_.unexpected("an index");
    tokens_.expect_symbol("]");
    return node<Subscript>(line, std::move(object), std::move(start));
  }
  auto slice = std::make_unique<Slice>(line, std::move(object));
  slice->start = std::move(start);
  tokens_.expect_symbol(":");
  if (!at_end()) slice->stop = parse_expression();
  if (tokens_.skip_symbol(":") && !at_end()) slice->step = parse_expression();
  tokens_.expect_symbol("]");
  return slice;
}

// As Jinja: a, *a, name=a, **a in this order, but for names, which may stand before *a; each star and each name once.
ArgumentList ExpressionParser::parse_arguments() {
  ArgumentList arguments;
  const int line = tokens_.line();
  const auto require = [&](bool good) {
    if (!good) throw SyntaxFault(line, "invalid syntax for function call expression");
  };
  tokens_.expect_symbol("(");
  while (!tokens_.at_symbol(")")) {
    if (tokens_.skip_symbol("*")) {
      require(!arguments.rest && !arguments.named_rest);
      arguments.rest = parse_expression();
    } else if (tokens_.skip_symbol("**")) {
      require(!arguments.named_rest);
      arguments.named_rest = parse_expression();
    } else if (tokens_.at(TokenKind::name) && tokens_.peek(1).kind == TokenKind::symbol &&
               tokens_.peek(1).text == "=") {
      require(!arguments.named_rest);
      std::string name = tokens_.next().text;
      tokens_.next();
      if (std::ranges::find(arguments.named, name, &std::pair<std::string, ExpressionPtr>::first) !=
          arguments.named.end())
        throw SyntaxFault(line, fmt::format("keyword argument repeated: {}", name));
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!arguments.named.empty() || arguments.rest || arguments.named_rest) {
        throw SyntaxFault(tokens_.line(), "a positional argument follows a named one");
      }
      arguments.positional.push_back(parse_expression());
    }
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol(")");
  return arguments;
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token token = tokens_.peek();
  switch (token.kind) {
    case TokenKind::name: return parse_name();
    case TokenKind::text: {
      std::string text;
      while (tokens_.at(TokenKind::text)) text += tokens_.next().text;  // adjacent literals are one
      return node<Literal>(token.line, constant_text(std::move(text)));
    }
    case TokenKind::integer:
    case TokenKind::real: {
      tokens_.next();
      if (token.kind == TokenKind::real) return node<Literal>(token.line, *parse_real(token.text));
      return node<Literal>(token.line, integer_of(token, 0));
    }
    case TokenKind::symbol: break;
    default: tokens_.unexpected("an expression");
  }
  if (token.text == "[") return parse_list();
  if (token.text == "{") return parse_dict();
  if (token.text != "(") tokens_.unexpected("an expression");
  tokens_.next();
  if (tokens_.skip_symbol(")")) return node<Display>(token.line, SequenceKind::tuple, std::vector<ExpressionPtr>());
  ExpressionPtr inner = parse_tuple();
  tokens_.expect_symbol(")");
  return inner;
}

ExpressionPtr ExpressionParser::parse_name() {
  const Token token = tokens_.next();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return node<Literal>(token.line, Value(true));
  if (name == "false" || name == "False") return node<Literal>(token.line, Value(false));
  if (name == "none" || name == "None") return node<Literal>(token.line, Value());
  seen_names_.insert(name);
  return node<Name>(token.line, name);
}

ExpressionPtr ExpressionParser::parse_list() {
  const int line = tokens_.line();
  std::vector<ExpressionPtr> items;
  tokens_.expect_symbol("[");
  while (!tokens_.at_symbol("]")) {
    items.push_back(parse_expression());
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol("]");
  return node<Display>(line, SequenceKind::list, std::move(items));
}

ExpressionPtr ExpressionParser::parse_dict() {
  auto dict = std::make_unique<DictDisplay>(tokens_.line());
  tokens_.expect_symbol("{");
  while (!tokens_.at_symbol("}")) {
    ExpressionPtr key = parse_expression();
    tokens_.expect_symbol(":");
    dict->entries.emplace_back(std::move(key), parse_expression());
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol("}");
  return dict;
}

void ExpressionParser::require_known(std::string_view name, bool is_filter) {
  if (conditional_depth_ > 0 || (is_filter ? is_filter_name(name) : is_test_name(name))) return;
  unknown_.emplace_back(tokens_.line(), is_filter ? unknown_filter(name) : unknown_test(name));
}

}  // namespace hexad::text::jinja
