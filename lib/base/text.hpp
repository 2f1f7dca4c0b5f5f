// Small works on texts: lists in messages, parts that stand for others.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>

namespace hexad {

// "a, b, c". Texts or integers. (fmt::join would instantiate its formatters in every file that says what it wanted.)
template <typename Items>
std::string joined(const Items& items, std::string_view separator = ", ") {
  std::string text;
  bool first = true;
  for (const auto& item : items) {
    if (!first) text += separator;
    first = false;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(item)>>) {
      text += std::to_string(item);
    } else {
      text += item;
    }
  }
  return text;
}

// `text` with `by` in every place of `part`, which is not empty.
inline std::string replaced(std::string text, std::string_view part, std::string_view by) {
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += by.size()) text.replace(at, part.size(), by);
  return text;
}

}  // namespace hexad
