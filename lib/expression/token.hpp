// The words of an expression.
#pragma once

#include <string>
#include <string_view>

namespace hexad::expression {

struct Token {
  enum class Kind { end, integer, decimal, text, path, word, symbol };  // word: one of the language, as `and`
  Kind kind = Kind::end;
  size_t at = 0;            // byte of the source
  std::string_view source;  // as it is written, quotes included

  bool is(std::string_view symbol) const { return (kind == Kind::word || kind == Kind::symbol) && source == symbol; }
  bool is_number() const { return kind == Kind::integer || kind == Kind::decimal; }
  std::string text() const;  // of a text: what it means
};

// Throws ParseError at the column of the byte `at` of `source`.
[[noreturn]] void fail_at(std::string_view source, size_t at, const std::string& reason);

// One token a call, so that errors come in the order of the text. `source` outlives the tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}
  Token next();  // Kind::end at the end, again and again; throws ParseError

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  std::string here() const;  // the character here, for an error
  Token token(Token::Kind kind, size_t start) const;
  Token path();
  Token number();
  Token text();
  Token symbol();
  void escaped();
  void digits(const char* wanted);
  void end_of_word() const;

  std::string_view source_;
  size_t at_ = 0;
};

}  // namespace hexad::expression
