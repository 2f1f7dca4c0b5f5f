// Text as code points: the widths that the extraction rules speak of are characters.
#pragma once
#include <string>
#include <string_view>

namespace hexad::math {

// Broken UTF-8 becomes U+FFFD.
std::u32string wide(std::string_view utf8);
std::string narrow(std::u32string_view text);

// White space of Unicode and the ASCII separators 1C to 1F, as Python's \s has it.
bool is_space(char32_t c);

// Of each character, without context (Rust's char::to_lowercase). `utf8` is valid.
std::string lowercase(std::string_view utf8);

// Without white space at the ends.
std::string_view trimmed(std::string_view utf8);

}  // namespace hexad::math
