// Text as code points: the widths that the extraction rules speak of are characters.
#pragma once
#include <string>
#include <string_view>

namespace hexad::environment::math {

// Broken UTF-8 becomes U+FFFD.
std::u32string wide(std::string_view utf8);
std::string narrow(std::u32string_view text);

// White space of Unicode and the ASCII separators 1C to 1F, as Python's \s has it.
bool is_space(char32_t c);

// Without white space at the ends.
std::string_view trimmed(std::string_view utf8);

}  // namespace hexad::environment::math
