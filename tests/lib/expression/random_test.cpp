// Whatever is read, there is a value, an unknown or a ParseError; under sanitizers, nothing else.
#include <array>
#include <random>

#include "tests/lib/expression/expect.hpp"

using namespace hexad::expression;

namespace {

std::mt19937 random_numbers(20240607);

size_t below(size_t bound) { return random_numbers() % bound; }

std::string random_bytes() {
  std::string text(below(60), '\0');
  for (char& c : text) c = static_cast<char>(random_numbers());
  return text;
}

std::string random_tokens(size_t most) {
  static constexpr std::array kTokens = {
      "if",      "else",  "or",   "and",  "not", "in", "true", "false",   "null",  "==",  "!=",
      "<=",      ">=",    "//",   "<",    ">",   "+",  "-",    "*",       "/",     "%",   "(",
      ")",       "[",     "]",    ",",    ".",   "{",  "}",    "0",       "1",     "-1",  "9223372036854775807",
      "0.5",     "1e308", "'a'",  "\"",   "\\",  "tp", "lr",   "betas.0", "least", "nan", "unknown",
      "has(tp)", "min(",  "max(", "gcd(", "len("};
  std::string text;
  for (size_t i = below(most); i > 0; --i) text += std::string(kTokens[below(kTokens.size())]) + (below(4) ? " " : "");
  return text;
}

// Operand operator operand ..., so that most of it parses.
std::string random_sentence() {
  static constexpr std::array kOperands = {
      "0",   "-1",       "least",   "largest", "0.5",       "-1e308",         "nan",
      "'a'", "[1, 'a']", "unknown", "true",    "not false", "gcd(least, tp)", "(1 if yes else lr)",
      "null"};
  static constexpr std::array kOperators = {
      "+", "-", "*", "/", "//", "%", "and", "or", " < lr and ", " in betas or ", "if yes else"};
  std::string text = kOperands[below(kOperands.size())];
  for (size_t i = below(8); i > 0; --i)
    text += std::string(" ") + kOperators[below(kOperators.size())] + " " + kOperands[below(kOperands.size())];
  return text;
}

template <typename T>
bool survives(const std::string& text) {
  try {
    const T parsed = T::parse(text);
    if constexpr (std::is_same_v<T, Message>)
      CHECK(parsed.format(sample).size() < 1'000'000);
    else
      CHECK(result(parsed.text()) == result(text));
    return true;
  } catch (const ParseError& error) {
    CHECK(error.column() >= 1);
    return false;
  }
}

}  // namespace

TEST_CASE("random texts are read or refused") {
  size_t sentences = 0;
  for (int i = 0; i < 20'000; ++i) {
    survives<Expression>(random_bytes());
    survives<Expression>(random_tokens(12));
    survives<Expression>(random_tokens(900));
    sentences += survives<Expression>(random_sentence());
    survives<Message>(random_tokens(12));
  }
  CHECK(sentences > 10'000);
}
