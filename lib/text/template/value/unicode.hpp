// Code points of UTF-8 text and Python's notions of them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace hexad::text::jinja {

// Reads the code point at `position` and moves past it; an invalid byte counts as one code point U+FFFD.
uint32_t next_code_point(std::string_view text, size_t& position);
void append_code_point(std::string& text, uint32_t code);
int64_t count_code_points(std::string_view text);
// Byte offset of the code point with index `index` (text.size() at or past the end).
size_t byte_offset(std::string_view text, int64_t index);

bool is_space(uint32_t code);      // str.isspace
bool is_printable(uint32_t code);  // str.isprintable: what repr() leaves as it is

// Length of the white space at the start / at the end, in bytes.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

// Decimal digits of every script as 0 to 9, as int() and float() read them.
std::string with_ascii_digits(std::string_view text);

// str.upper, str.lower, str.title, str.capitalize, str.swapcase, str.casefold
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);
std::string case_fold(std::string_view text);

// str.isalpha and so on: all characters have the property, and there is one.
bool is_alpha(std::string_view text);
bool is_alnum(std::string_view text);
bool is_decimal(std::string_view text);
bool is_digit(std::string_view text);
bool is_numeric(std::string_view text);
bool all_space(std::string_view text);
bool is_upper(std::string_view text);  // some cased character, and no lower-case one
bool is_lower(std::string_view text);

}  // namespace hexad::text::jinja
