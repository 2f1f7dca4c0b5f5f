// UTF-8 and the character classes that tokenizer regexes use, of one Unicode version whatever ICU is installed.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

// Decodes one character of valid UTF-8 at `at` and moves past it.
inline char32_t next_char(const char*& at) {
  const auto byte = [&](int i) { return static_cast<uint8_t>(at[i]); };
  const uint8_t lead = byte(0);
  char32_t c;
  if (lead < 0x80) {
    c = lead, at += 1;
  } else if (lead < 0xE0) {
    c = (lead & 0x1Fu) << 6 | (byte(1) & 0x3Fu), at += 2;
  } else if (lead < 0xF0) {
    c = (lead & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu), at += 3;
  } else {
    c = (lead & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu), at += 4;
  }
  return c;
}

// Bytes of the character whose first byte is `lead`, in valid UTF-8.
inline size_t char_size(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void append_utf8(char32_t c, std::string& out);

bool is_ascii(std::string_view text);

// `text` when it is valid UTF-8; else `buffer`, filled with the text in which every maximal part of a broken sequence
// is one U+FFFD (Python's errors="replace", Rust's from_utf8_lossy).
std::string_view valid_utf8(std::string_view text, std::string& buffer);

}  // namespace hexad::text
