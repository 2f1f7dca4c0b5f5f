#include "lib/expression/token.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/expression/expression.hpp"
#include "lib/expression/value.hpp"

namespace hexad::expression {
namespace {

using Kind = Token::Kind;

constexpr std::array<std::string_view, 9> kWords = {"if", "else", "or", "and", "not", "in", "true", "false", "null"};
constexpr std::array<std::string_view, 17> kSymbols = {"==", "!=", "<=", ">=", "//", "<", ">", "+", "-",
                                                       "*",  "/",  "%",  "(",  ")",  "[", "]", ","};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return begins_name(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// What people write who think of another language.
const char* meant_by(char c) {
  switch (c) {
    case '=': return "'=='";
    case '&': return "'and'";
    case '|': return "'or'";
    case '!': return "'not' or '!='";
    default: return "a value or an operator";
  }
}

}  // namespace

void fail_at(std::string_view source, size_t at, const std::string& reason) {
  throw ParseError(characters(source.substr(0, at)) + 1, reason);
}

std::string Token::text() const {
  std::string meaning;
  for (size_t at = 1; at + 1 < source.size(); ++at) {  // between the quotes
    const bool escaped = source[at] == '\\';
    const char c = source[at += escaped];
    meaning += escaped && c == 'n' ? '\n' : escaped && c == 't' ? '\t' : c;
  }
  return meaning;
}

std::string Lexer::here() const {
  if (at_ >= source_.size()) return "the end";
  const std::string_view rest = source_.substr(at_, 4);  // a character has no more bytes
  const auto end = std::find_if_not(rest.begin() + 1, rest.end(), continues_character);
  const std::string escaped = fmt::format("{:?}", std::string_view(rest.begin(), end));  // in double quotes
  return fmt::format("'{}'", std::string_view(escaped).substr(1, escaped.size() - 2));
}

Token Lexer::token(Kind kind, size_t start) const { return {kind, start, source_.substr(start, at_ - start)}; }

Token Lexer::next() {
  while (at_ < source_.size() && is_space(peek())) ++at_;
  if (at_ >= source_.size()) return token(Kind::end, at_);
  if (begins_name(peek())) return path();
  if (is_digit(peek())) return number();
  if (peek() == '\'' || peek() == '"') return text();
  return symbol();
}

// Names joined by dots without spaces; after the first, the index of a list's item too. Only the first name must not be
// a word of the language: `run.in` is a path.
Token Lexer::path() {
  const size_t start = at_;
  const auto name = [&] {
    while (is_name(peek())) ++at_;
  };
  name();
  const std::string_view first = source_.substr(start, at_ - start);
  while (peek() == '.') {
    ++at_;
    if (is_digit(peek())) {
      digits("a digit");
    } else {
      if (!begins_name(peek())) fail_at(source_, at_, fmt::format("got {}, wanted a name or an index", here()));
      name();
    }
  }
  end_of_word();
  const Token found = token(Kind::path, start);
  constexpr size_t kLongestWord = std::string_view("false").size();
  if (first.size() > kLongestWord || std::ranges::find(kWords, first) == kWords.end()) return found;
  if (found.source == first) return token(Kind::word, start);
  fail_at(source_, start, fmt::format("got '{}', wanted a path that does not begin with '{}'", found.source, first));
}

Token Lexer::number() {
  const size_t start = at_;
  Kind kind = Kind::integer;
  digits("a digit");
  if (peek() == '.') {
    kind = Kind::decimal;
    ++at_;
    digits("a digit");
  }
  if (peek() == 'e' || peek() == 'E') {
    kind = Kind::decimal;
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    digits("a digit of the exponent");
  }
  end_of_word();
  return token(kind, start);
}

void Lexer::digits(const char* wanted) {
  if (!is_digit(peek())) fail_at(source_, at_, fmt::format("got {}, wanted {}", here(), wanted));
  while (is_digit(peek())) ++at_;
}

// `1and` and `2x` are slips, not two words.
void Lexer::end_of_word() const {
  if (is_name(peek()) || peek() == '.') fail_at(source_, at_, fmt::format("got {}, wanted the number's end", here()));
}

Token Lexer::text() {
  const size_t start = at_;
  const char quote = source_[at_++];
  while (at_ < source_.size() && source_[at_] != quote) {
    if (source_[at_++] == '\\') escaped();
  }
  if (at_ >= source_.size()) fail_at(source_, start, fmt::format("a text without end, wanted {} after it", quote));
  ++at_;
  return token(Kind::text, start);
}

void Lexer::escaped() {
  const char c = peek();
  if (c != '\\' && c != '\'' && c != '"' && c != 'n' && c != 't')
    fail_at(source_, at_, fmt::format(R"(got {} after a backslash, wanted \, ', ", n or t)", here()));
  ++at_;
}

Token Lexer::symbol() {
  const std::string_view rest = source_.substr(at_);
  const auto found = std::ranges::find_if(
      kSymbols, [&](std::string_view symbol) { return rest[0] == symbol[0] && rest.starts_with(symbol); });
  if (found == kSymbols.end()) fail_at(source_, at_, fmt::format("got {}, wanted {}", here(), meant_by(rest[0])));
  const size_t start = at_;
  at_ += found->size();
  return token(Kind::symbol, start);
}

}  // namespace hexad::expression
