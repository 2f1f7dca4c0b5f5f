// The tokens of a template as the parsers walk them.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/text/template/syntax/lexer.hpp"

namespace hexad::text::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }
  Token next() {
    Token token = peek();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  int line() const { return peek().line; }

  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at_symbol(std::string_view symbol) const { return at(TokenKind::symbol) && peek().text == symbol; }
  bool at_name(std::string_view name) const { return at(TokenKind::name) && peek().text == name; }
  bool skip_symbol(std::string_view symbol) { return at_symbol(symbol) && (next(), true); }
  bool skip_name(std::string_view name) { return at_name(name) && (next(), true); }

  void expect_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol)) unexpected(fmt::format("'{}'", symbol));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) unexpected(fmt::format("'{}'", name));
  }
  void expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) unexpected(what);
    next();
  }
  std::string expect_any_name(std::string_view what) {
    if (!at(TokenKind::name)) unexpected(what);
    return next().text;
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    throw SyntaxFault(line(), fmt::format("got {}, expected {}", describe(peek()), wanted));
  }

 private:
  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::end: return "the end of the template";
      case TokenKind::data: return "text";
      case TokenKind::text: return "a string";
      case TokenKind::block_end: return "the end of the statement";
      case TokenKind::print_end: return "the end of the expression";
      default: return fmt::format("'{}'", token.text);
    }
  }

  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace hexad::text::jinja
