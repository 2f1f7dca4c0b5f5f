#include "lib/yaml/scalar.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "lib/base/error.hpp"
#include "lib/base/pattern.hpp"

namespace hexad::yaml {
namespace {

// No number is longer.
constexpr size_t kLongestNumber = 200;

// Nearly all texts that are no numbers show it by their first character.
bool matches(const std::string& text, const Pattern& pattern) {
  constexpr std::string_view kFirst = "-+.0123456789";
  return !text.empty() && kFirst.find(text[0]) != kFirst.npos && text.size() <= kLongestNumber && pattern.matches(text);
}

bool is_int(const std::string& text) {
  static const Pattern pattern(
      "[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+");
  return matches(text, pattern);
}

// The union of YAML 1.1's float pattern and the one that OmegaConf adds (exponents without a point).
bool is_float(const std::string& text) {
  static const Pattern pattern(
      "[-+]?[0-9][0-9_]*\\.[0-9_]*(?:[eE][-+][0-9]+)?|\\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
      "|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\\.[0-9_]*"
      "|[-+]?[0-9]+(?:_[0-9]+)*\\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+"
      "|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN)");
  return matches(text, pattern);
}

std::optional<bool> as_bool(std::string_view text) {
  for (const std::string_view word : {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

bool is_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

[[noreturn]] void bad_integer(const std::string& text) {
  fail(ErrorKind::config, "integer {} does not fit 64 bits; quote it if it is text", text);
}

int64_t digits_to_int(const std::string& digits, int base, const std::string& text) {
  try {
    size_t used = 0;
    const int64_t value = std::stoll(digits, &used, base);
    if (used == digits.size()) return value;
  } catch (const std::exception&) {
  }
  bad_integer(text);
}

// "1:30:00" in base 60.
template <typename T>
T sexagesimal(const std::string& digits) {
  T value = 0;
  size_t begin = 0;
  while (true) {
    const size_t colon = digits.find(':', begin);
    const std::string part = digits.substr(begin, colon - begin);
    value = value * 60 + (std::is_integral_v<T> ? static_cast<T>(std::stoll(part)) : static_cast<T>(std::stod(part)));
    if (colon == std::string::npos) return value;
    begin = colon + 1;
  }
}

int64_t to_int(const std::string& text) {
  std::string digits = text;
  std::erase(digits, '_');
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const std::string sign = negative ? "-" : "";
  if (digits.starts_with("0b")) return digits_to_int(sign + digits.substr(2), 2, text);
  if (digits.starts_with("0x")) return digits_to_int(sign + digits.substr(2), 16, text);
  if (digits.find(':') != std::string::npos) {
    if (digits.size() > 18) bad_integer(text);
    return (negative ? -1 : 1) * sexagesimal<int64_t>(digits);
  }
  const bool octal = digits.size() > 1 && digits[0] == '0';
  return digits_to_int(sign + digits, octal ? 8 : 10, text);
}

double to_float(const std::string& text) {
  std::string digits = text;
  std::erase(digits, '_');
  std::ranges::transform(digits, digits.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const double sign = negative ? -1 : 1;
  if (digits == ".inf") return sign * std::numeric_limits<double>::infinity();
  if (digits == ".nan") return std::numeric_limits<double>::quiet_NaN();
  if (digits.find(':') != std::string::npos) return sign * sexagesimal<double>(digits);
  return sign * std::strtod(digits.c_str(), nullptr);
}

std::string lower(std::string_view word) {
  std::string result(word);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

int64_t word_to_int(std::string digits, std::string_view word) {
  if (digits.starts_with('+')) digits.erase(0, 1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  fail(ErrorKind::config, "integer {} does not fit 64 bits; quote it if it is text", word);
}

}  // namespace

Node::Value plain_scalar(std::string_view view) {
  const std::string text(view);
  if (const std::optional<bool> boolean = as_bool(text)) return *boolean;
  if (is_int(text)) return to_int(text);
  if (is_float(text)) return to_float(text);
  if (is_null(text)) return std::monostate();
  if (text == "=" || text == "<<") fail(ErrorKind::config, "'{}' is a reserved word of YAML 1.1; quote it", text);
  return text;
}

Node::Value tagged_scalar(std::string_view tag, std::string_view view) {
  const std::string text(view);
  if (tag == "tag:yaml.org,2002:str") return text;
  if (tag == "tag:yaml.org,2002:null") return std::monostate();
  if (tag == "tag:yaml.org,2002:int" && is_int(text)) return to_int(text);
  if (tag == "tag:yaml.org,2002:float" && (is_float(text) || is_int(text))) {
    return is_float(text) ? to_float(text) : static_cast<double>(to_int(text));
  }
  if (tag == "tag:yaml.org,2002:bool") {
    if (const std::optional<bool> boolean = as_bool(text)) return *boolean;
  }
  fail(ErrorKind::config, "tag {} cannot be applied to '{}'; known tags are !!str !!int !!float !!bool !!null", tag,
       text);
}

Node::Value word_value(std::string_view word) {
  static const Pattern integer("[+-]?(?:0|[1-9](?:_?[0-9])*)");
  static const Pattern real(
      "[+-]?(?:(?:0|[1-9](?:_?[0-9])*)?\\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
      "|(?:0|[1-9](?:_?[0-9])*)\\.(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
      "|(?:0|[1-9](?:_?[0-9])*)[eE][+-]?[0-9](?:_?[0-9])*)");
  const std::string small = lower(word);
  std::string digits(word);
  std::erase(digits, '_');
  if (integer.matches(word)) return word_to_int(digits, word);
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
