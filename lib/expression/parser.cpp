// Recursive descent; brackets are all that recurses.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "lib/expression/expression.hpp"
#include "lib/expression/grammar.hpp"
#include "lib/expression/token.hpp"
#include "lib/expression/value.hpp"

namespace hexad::expression {
namespace {

constexpr size_t kUsualParts = 12;  // of an expression in a manifest: room for so many at once

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), lexer_(text) {}

  Program parse() {
    if (const size_t length = characters(text_); length > kMostCharacters)
      throw ParseError(kMostCharacters + 1,
                       fmt::format("got {} characters, wanted at most {}", length, kMostCharacters));
    program_.text = text_;
    program_.code.reserve(kUsualParts);
    advance();
    conditional();
    if (token_.kind != Token::Kind::end) fail_got("an operator or the end");
    return std::move(program_);
  }

 private:
  [[noreturn]] void fail(size_t at, const std::string& reason) const { fail_at(text_, at, reason); }
  [[noreturn]] void fail_got(std::string_view wanted) const {
    std::string got = "the end";
    if (token_.kind == Token::Kind::text)
      got = fmt::format("the text {:?}", token_.text());
    else if (token_.kind != Token::Kind::end)
      got = fmt::format("'{}'", token_.source);
    fail(token_.at, fmt::format("got {}, wanted {}", got, wanted));
  }

  Token advance() {
    Token last = std::exchange(token_, lexer_.next());
    const bool may_be = token_.kind == Token::Kind::word || token_.kind == Token::Kind::symbol;
    const auto* found = may_be ? std::ranges::find(kOperators, token_.source, &Operator::symbol) : std::end(kOperators);
    operator_ = found == std::end(kOperators) ? nullptr : found;
    return last;
  }
  bool accept(std::string_view symbol) { return token_.is(symbol) && (advance(), true); }
  void expect(std::string_view symbol, std::string_view wanted) {
    if (!accept(symbol)) fail_got(wanted);
  }

  void emit(Op op, size_t operands, size_t index = 0) {
    if (program_.code.size() == kMostParts)
      fail(token_.at, fmt::format("got more than {0} values and operators, wanted at most {0}", kMostParts));
    program_.code.push_back({op, operands, index});
  }

  // `a if c else b if d else e` groups from the right: the choices come last, the last one first.
  void conditional() {
    binary(kOr);
    size_t choices = 0;
    for (; accept("if"); ++choices) {
      binary(kOr);
      expect("else", "an operator or 'else'");
      binary(kOr);
    }
    while (choices-- > 0) emit(Op::choose, 3);
  }

  const Operator* operator_here(int level) const {
    return operator_ && operator_->level == level ? operator_ : nullptr;
  }

  void binary(int level) {
    if (level == kNot) return prefix("not", Op::negation, [&] { binary(kComparison); });
    if (level == kMinus) return prefix("-", Op::minus, [&] { primary(); });
    binary(level + 1);
    while (const Operator* found = operator_here(level)) {
      advance();
      if (found->op == Op::not_in) expect("in", "'in'");
      binary(level + 1);
      emit(found->op, 2);
      if (level == kComparison && operator_here(level))
        fail_got("one comparison; join two of them by 'and', as in a < b and b < c");
    }
  }

  template <typename Operand>
  void prefix(std::string_view symbol, Op op, const Operand& operand) {
    size_t count = 0;
    while (accept(symbol)) ++count;
    if (op == Op::minus && count > 0 && token_.is_number()) {  // the least integer has no positive twin to negate
      constant_number("-");
      --count;
    } else {
      operand();
    }
    while (count-- > 0) emit(op, 1);
  }

  void primary() {
    if (token_.is_number()) return constant_number("");
    if (token_.kind == Token::Kind::text) return constant(Value(advance().text()));
    if (token_.kind == Token::Kind::path) return path_or_call();
    if (accept("true")) return constant(Value(true));
    if (accept("false")) return constant(Value(false));
    if (accept("null")) return constant(Value());
    if (token_.is("[")) return emit(Op::list, items("]"));
    if (!token_.is("(")) fail_got("a value");
    open();
    conditional();
    close(")", "an operator or ')'");
  }

  void constant(const Value& value) {
    program_.constants.push_back(value);
    emit(Op::constant, 0, program_.constants.size() - 1);
  }

  void constant_number(const std::string& sign) {
    const Token token = advance();
    const std::string digits = sign + std::string(token.source);
    const auto read = [&](auto number) {
      const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (result.ec != std::errc()) fail(token.at, fmt::format("{} is out of the range of 64 bits", digits));
      constant(Value(number));
    };
    if (token.kind == Token::Kind::integer)
      read(int64_t{0});
    else
      read(0.0);
  }

  void path_or_call() {
    const Token name = advance();
    if (token_.is("(")) return call(name);
    emit(Op::path, 0, path_index(name.source));
  }

  size_t path_index(std::string_view path) {
    const auto found = std::ranges::find(program_.paths, path);
    const auto index = static_cast<size_t>(found - program_.paths.begin());
    if (found == program_.paths.end()) program_.paths.emplace_back(path);
    return index;
  }

  void call(const Token& name) {
    const auto* function = std::ranges::find(kFunctions, name.source, &Function::name);
    if (function == std::end(kFunctions)) {
      std::string known;
      for (const Function& each : kFunctions) known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
      fail(name.at, fmt::format("no function '{}'; known: {}", name.source, known));
    }
    if (function->op == Op::has || function->op == Op::known) return call_of_path(*function);
    const size_t count = items(")");
    if (count < function->least || count > function->most)
      fail(name.at, fmt::format("{} got {} argument{}, wanted {}{}", name.source, count, count == 1 ? "" : "s",
                                function->most == kAnyNumber ? "at least " : "", function->least));
    emit(function->op, count);
  }

  void call_of_path(const Function& function) {
    open();
    if (token_.kind != Token::Kind::path) fail_got(fmt::format("a path, as in {}(optimizer.name)", function.name));
    emit(function.op, 0, path_index(advance().source));
    close(")", "')'");
  }

  // "(a, b)" or "[a, b]" from its bracket on; how many there are.
  size_t items(std::string_view bracket) {
    open();
    size_t count = 0;
    if (!token_.is(bracket)) {
      do conditional();
      while (++count, accept(","));
    }
    close(bracket, fmt::format("an operator, ',' or '{}'", bracket));
    return count;
  }

  void open() {
    if (++level_ > kMostLevels)
      fail(token_.at, fmt::format("got more than {0} levels, wanted at most {0}", kMostLevels));
    advance();
  }
  void close(std::string_view bracket, std::string_view wanted) {
    expect(bracket, wanted);
    --level_;
  }

  std::string_view text_;
  Lexer lexer_;
  Token token_;                         // the next one
  const Operator* operator_ = nullptr;  // that it is, if it is one of two operands
  size_t level_ = 0;
  Program program_;
};

}  // namespace

Program parse_program(std::string_view text) { return Parser(text).parse(); }

}  // namespace hexad::expression
