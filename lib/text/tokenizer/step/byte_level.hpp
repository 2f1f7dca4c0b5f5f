// GPT-2's map between bytes and printable characters: '!'..'~', U+00A1..AC and U+00AE..FF stand for themselves, the
// other 68 bytes are U+0100 and up in order. " " is U+0120 "Ġ".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hexad::text {

// UTF-8 of the character that stands for `byte`.
std::string_view byte_char(uint8_t byte);

// Appends the characters of all bytes of `text`.
void append_byte_chars(std::string_view text, std::string& out);

// The bytes that the characters of `token` stand for, or nothing when one of them stands for none.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace hexad::text
