#include "lib/yaml/word.hpp"

#include <charconv>
#include <limits>

#include "lib/base/error.hpp"
#include "lib/base/pattern.hpp"

namespace hexad::yaml {
namespace {

std::string lower(std::string_view word) {
  std::string result(word);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

int64_t to_int(std::string digits, std::string_view word) {
  if (digits.starts_with('+')) digits.erase(0, 1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  fail(ErrorKind::config, "integer {} does not fit 64 bits; quote it if it is text", word);
}

}  // namespace

Node::Value word_value(std::string_view word) {
  static const Pattern integer("[+-]?(?:0|[1-9](?:_?[0-9])*)");
  static const Pattern real(
      "[+-]?(?:(?:0|[1-9](?:_?[0-9])*)?\\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
      "|(?:0|[1-9](?:_?[0-9])*)\\.(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
      "|(?:0|[1-9](?:_?[0-9])*)[eE][+-]?[0-9](?:_?[0-9])*)");
  const std::string small = lower(word);
  std::string digits(word);
  std::erase(digits, '_');
  if (integer.matches(word)) return to_int(digits, word);
  if (real.matches(word)) return std::strtod(digits.c_str(), nullptr);
  if (small == "true" || small == "false") return small == "true";
  if (small == "null") return std::monostate();
  const bool negative = small.starts_with('-');
  const std::string_view unsigned_word = std::string_view(small).substr(negative || small.starts_with('+') ? 1 : 0);
  const double infinity = std::numeric_limits<double>::infinity();
  if (unsigned_word == "inf") return negative ? -infinity : infinity;
  if (unsigned_word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::string(word);
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && std::string_view("_/-\\+.$%*@?|").find(c) != std::string_view::npos);
}

bool is_escapable(char c) { return c != '\0' && std::string_view("\\()[]{}:=, \t").find(c) != std::string_view::npos; }

}  // namespace hexad::yaml
