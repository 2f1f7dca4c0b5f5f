#include "lib/yaml/python_text.hpp"

#include <charconv>
#include <cmath>

namespace hexad::yaml {
namespace {

// repr(str): single quotes, or double quotes where the text holds single ones only.
std::string python_repr(const std::string& text) {
  const bool single_inside = text.find('\'') != std::string::npos, double_inside = text.find('"') != std::string::npos;
  const char quote = single_inside && !double_inside ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else {
      if (c == quote || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + quote;
}

std::string element_text(const Node& value) {
  return value.is_string() ? python_repr(value.as_string()) : python_str(value);
}

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, end - buffer);
  const size_t e = text.find('e');
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(text);
  std::string digits(text.substr(0, e));
  const bool negative = digits[0] == '-';
  std::erase_if(digits, [](char c) { return c == '.' || c == '-'; });
  if (exponent < 0) {
    digits = "0." + std::string(-exponent - 1, '0') + digits;
  } else {
    const size_t point = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= point) digits.append(point + 1 - digits.size(), '0');
    digits.insert(point, ".");
  }
  return negative ? "-" + digits : digits;
}

std::string python_str(const Node& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_double()) return python_float(value.as_double());
  if (value.is_string()) return value.as_string();
  std::string inside;
  if (value.is_list()) {
    for (const Node& item : value.items()) inside += (inside.empty() ? "" : ", ") + element_text(item);
    return "[" + inside + "]";
  }
  for (const auto& [key, item] : value.entries()) {
    inside += fmt::format("{}{}: {}", inside.empty() ? "" : ", ", python_repr(key), element_text(item));
  }
  return "{" + inside + "}";
}

}  // namespace hexad::yaml
