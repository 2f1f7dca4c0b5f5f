#pragma once

#include <algorithm>
#include <string_view>

namespace hexad::expression {

inline bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Characters of UTF-8, which is not checked.
inline size_t characters(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, continues_character));
}

}  // namespace hexad::expression
