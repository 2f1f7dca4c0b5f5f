// A tree as JSON and as YAML, and as Python's text.
#include <charconv>
#include <cmath>

#include "lib/base/error.hpp"
#include "lib/yaml/node.hpp"
#include "lib/yaml/scalar.hpp"

namespace hexad::yaml {
namespace {

// Text that needs no quotation marks: words of plain characters that YAML does not take for something else.
bool is_plain(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && std::string_view("_/.+- ").find(c) != std::string_view::npos);
  };
  if (text.empty() || text.size() > 200 || !std::ranges::all_of(text, plain)) return false;
  const char first = text.front();
  if (first == ' ' || first == '-' || first == '+' || text.back() == ' ') return false;
  try {
    return std::holds_alternative<std::string>(plain_scalar(text));
  } catch (const Error&) {
    return false;  // a number that does not fit
  }
}

// With `interpolates`, "${" begins an interpolation; else it stands for itself.
std::string quoted(const std::string& text, bool interpolates = false) {
  std::string result = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else if (!interpolates && c == '$' && i + 1 < text.size() && text[i + 1] == '{') {
      result += "\\\\$";  // keeps the loader from reading an interpolation
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string text_yaml(const std::string& text) { return is_plain(text) ? text : quoted(text); }

std::string scalar_yaml(const Node& node) {
  if (!node.source().empty()) return quoted(node.source(), /*interpolates=*/true);
  if (node.is_null()) return "null";
  if (node.is_bool()) return node.as_bool() ? "true" : "false";
  if (node.is_int()) return std::to_string(node.as_int());
  if (node.is_string()) return text_yaml(node.as_string());
  const double value = node.as_double();
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  return python_float(value);
}

bool is_block(const Node& node) {
  if (!node.source().empty()) return false;
  return (node.is_map() && !node.entries().empty()) || (node.is_list() && !node.items().empty());
}

// What is no block.
std::string flow_yaml(const Node& node) {
  if (node.source().empty() && node.is_container()) return node.is_map() ? "{}" : "[]";
  return scalar_yaml(node);
}

void write(const Node& node, int indent, std::string& out);

// What follows "key:" or "-": a scalar on the line, or a block below it.
void write_value(const Node& value, int indent, std::string& out) {
  if (is_block(value)) {
    out += '\n';
    write(value, indent + 2, out);
  } else {
    out += " " + flow_yaml(value) + "\n";
  }
}

void write(const Node& node, int indent, std::string& out) {
  if (node.is_list()) {
    for (const Node& item : node.items()) {
      out += std::string(indent, ' ') + "-";
      write_value(item, indent, out);
    }
    return;
  }
  for (const auto& [key, value] : node.entries()) {
    out += std::string(indent, ' ') + text_yaml(key) + ":";
    write_value(value, indent, out);
  }
}

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

nlohmann::ordered_json Node::to_json() const {
  if (is_null()) return nullptr;
  if (is_bool()) return as_bool();
  if (is_int()) return as_int();
  if (is_double()) return as_double();
  if (is_string()) return as_string();
  if (is_list()) {
    nlohmann::ordered_json result = nlohmann::ordered_json::array();
    for (const Node& item : items()) result.push_back(item.to_json());
    return result;
  }
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
  for (const auto& [key, value] : entries()) result[key] = value.to_json();
  return result;
}

std::string Node::to_yaml() const {
  std::string out;
  if (is_block(*this))
    write(*this, 0, out);
  else
    out = flow_yaml(*this) + "\n";
  return out;
}

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
