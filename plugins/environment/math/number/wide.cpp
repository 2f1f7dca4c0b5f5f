#include "plugins/environment/math/number/wide.hpp"

#include "lib/base/utf8.hpp"

namespace hexad::math {

std::u32string wide(std::string_view utf8) {
  std::string buffer;
  const std::string_view valid = valid_utf8(utf8, buffer);
  std::u32string result;
  result.reserve(valid.size());
  for (const char* at = valid.data(); at < valid.data() + valid.size();) result += next_char(at);
  return result;
}

std::string narrow(std::u32string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : text) append_utf8(c, result);
  return result;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view trimmed(std::string_view utf8) {
  const auto space = [](char c) { return static_cast<unsigned char>(c) < 0x80 && is_space(static_cast<char32_t>(c)); };
  while (!utf8.empty() && space(utf8.front())) utf8.remove_prefix(1);
  while (!utf8.empty() && space(utf8.back())) utf8.remove_suffix(1);
  return utf8;
}

}  // namespace hexad::math
