// The values of expressions.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hexad::expression {

// Null, a boolean, an integer, a number, a text (UTF-8) or a list. Constructors are explicit and take exact kinds, so
// that no pointer becomes a boolean and no large unsigned number becomes negative.
struct Value {
  using List = std::vector<Value>;

  Value() = default;  // null
  explicit Value(std::same_as<bool> auto truth) : data(truth) {}
  explicit Value(std::signed_integral auto whole) : data(static_cast<int64_t>(whole)) {}
  explicit Value(std::floating_point auto number) : data(static_cast<double>(number)) {}
  explicit Value(std::string text) : data(std::move(text)) {}
  explicit Value(const char* text) : data(std::string(text)) {}
  explicit Value(List list) : data(std::move(list)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(data); }

  // As a person writes it in YAML: null, true, 3, 0.5, alltoall, [1, 2]. Texts have no quotes.
  std::string text() const;

  // Integers and numbers are compared by number, exactly (2**53 + 1 is not 2.0**53); other kinds differ.
  bool operator==(const Value& other) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, List> data;
};

// Numbers by number, texts by their bytes. Unordered: other kinds, kinds that differ, and what is not a number (NaN).
std::partial_ordering order(const Value& a, const Value& b);

inline bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Characters of UTF-8, which is not checked.
inline size_t characters(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, continues_character));
}

}  // namespace hexad::expression
