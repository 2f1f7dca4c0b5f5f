// How Python writes values: str(), repr(), json.dumps(); and how it reads numbers and string literals.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "lib/text/template/value/value.hpp"

namespace hexad::text::jinja {

std::string integer_text(Int value);
std::string real_text(double value);            // repr(float): shortest digits that read back the same
std::string quote_text(std::string_view text);  // repr(str)
std::string repr(const Value& value, Budget& budget);
std::string str(const Value& value, Budget& budget);  // undefined gives nothing

// Parses like int(text) / float(text); nullopt where Python raises ValueError.
std::optional<Int> parse_integer(std::string_view text, int base);
std::optional<double> parse_real(std::string_view text);

struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent;  // of one level; absent: one line
  std::string item_separator, key_separator;
};
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

// Replaces Python's escapes (\n, \t, \x41, \u00e9, \U0001f600, \101 ...); an unknown one stays as it is. Throws Fault.
std::string unescape(std::string_view text);

}  // namespace hexad::text::jinja
