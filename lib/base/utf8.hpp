// UTF-8: where a text stops being it, and its characters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hexad {

// Bytes at the front of `text` that are ASCII.
size_t ascii_prefix(std::string_view text);

inline bool is_ascii(std::string_view text) { return ascii_prefix(text) == text.size(); }

// Bytes at the front of `text` that are valid UTF-8. `broken`: if given, and there are more bytes, gets the size of the
// maximal part of a broken sequence that follows (Unicode 15, 3.9: what one U+FFFD replaces).
size_t utf8_prefix(std::string_view text, size_t* broken = nullptr);

// `text` when it is valid UTF-8; else `buffer`, filled with the text in which every maximal part of a broken sequence
// is one U+FFFD (Python's errors="replace", Rust's from_utf8_lossy).
std::string_view valid_utf8(std::string_view text, std::string& buffer);

// The front or the back of `text` of at most `most` bytes, which begins and ends between characters.
std::string_view utf8_front(std::string_view text, size_t most);
std::string_view utf8_back(std::string_view text, size_t most);
// Such a front, with " ..." behind it where there is more: a stranger's text for a message.
std::string shortened(std::string_view text, size_t most);

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

inline void append_utf8(char32_t c, std::string& out) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

}  // namespace hexad
