// Lists in messages.
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

}  // namespace hexad
