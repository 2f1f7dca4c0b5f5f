// Shorthands of these tests.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <map>
#include <string>

#include "lib/expression/message.hpp"

namespace hexad::expression {

// What paths stand for in these tests; `unknown` and what is below it cannot be known, others are null.
inline std::optional<Value> sample(std::string_view path) {
  static const std::map<std::string, Value, std::less<>> values = {{"tp", Value(4)},
                                                                   {"lr", Value(0.5)},
                                                                   {"name", Value("adam")},
                                                                   {"yes", Value(true)},
                                                                   {"run.in", Value(7)},
                                                                   {"largest", Value(INT64_MAX)},
                                                                   {"nan", Value(std::nan(""))},
                                                                   {"least", Value(INT64_MIN)},
                                                                   {"betas", Value(Value::List{Value(0.9), Value(1)})},
                                                                   {"betas.0", Value(0.9)}};
  if (path.starts_with("unknown")) return std::nullopt;
  const auto found = values.find(path);
  return found == values.end() ? Value() : found->second;
}

// The value as text, with what tells its kind: 1, 1.5, 2.0 (a double that is whole), 'text', [..]; ? if unknown.
inline std::string shown(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.data)) return "'" + *text + "'";
  const auto* number = std::get_if<double>(&value.data);
  const bool whole = number && value.text().find_first_not_of("-0123456789") == std::string::npos;
  return value.text() + (whole ? ".0" : "");
}

inline std::string result(std::string_view text) {
  const std::optional<Value> value = Expression::parse(text).evaluate(sample);
  return value ? shown(*value) : "?";
}

// Rows of "expression, result".
inline void check(std::initializer_list<std::pair<const char*, const char*>> rows) {
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK(result(row.first) == row.second);
  }
}

// The error's text, "" if there is none.
template <typename T = Expression>
std::string refusal(std::string_view text) {
  try {
    T::parse(text);
  } catch (const ParseError& error) {
    CHECK(error.what() == "column " + std::to_string(error.column()) + ": " + error.reason());
    return error.what();
  }
  return "";
}

}  // namespace hexad::expression
