// The character classes that tokenizer regexes use, of one Unicode version whatever ICU is installed; and UTF-8.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/utf8.hpp"

namespace hexad::text {

// Bits of `char_classes`, as `tokenizers` 0.23 has them: where nothing else is said, those of its Oniguruma
// (Unicode 16).
enum CharClass : uint8_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kSpace = 4,         // \s, White_Space
  kLineEnd = 8,       // \r and \n
  kPunctuation = 16,  // \p{P} of Unicode 8, which the Punctuation pre-tokenizer cuts at
  kNumeric = 32,      // Rust's char::is_numeric: \p{N} of Unicode 17
};

// The classes of every code point up to U+10FFFF, built on the first call. Any thread.
const uint8_t* char_classes();

// \w of Rust's regex crate: alphabetic, mark, decimal number, connector punctuation, join control.
bool is_word_char(char32_t c);

// Rust's char::to_lowercase (Unicode 17): no context, so a final sigma is not special. Appends UTF-8.
void append_lowercase(char32_t c, std::string& out);

// Code points first assigned after Unicode 14 and up to 16, with their general category ("Lo").
struct NewerRange {
  char32_t first, last;
  char category[3];
};
std::span<const NewerRange> assigned_after_unicode_14();

}  // namespace hexad::text
