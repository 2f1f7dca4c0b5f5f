// Texts with parts that stand for others.
#pragma once
#include <string>
#include <string_view>

namespace hexad {

// `text` with `by` in every place of `part`, which is not empty.
inline std::string replaced(std::string text, std::string_view part, std::string_view by) {
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += by.size()) text.replace(at, part.size(), by);
  return text;
}

}  // namespace hexad
