#include "lib/text/tokenizer/step/byte_level.hpp"

#include <array>

#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

struct Table {
  std::array<std::string, 256> chars;
  std::array<int16_t, 512> bytes;  // by code point; -1: stands for no byte

  Table() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      const char32_t c = itself ? byte : next++;
      append_utf8(c, chars[byte]);
      bytes[c] = static_cast<int16_t>(byte);
    }
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

std::string_view byte_char(uint8_t byte) { return table().chars[byte]; }

void append_byte_chars(std::string_view text, std::string& out) {
  const Table& map = table();
  for (const char byte : text) out += map.chars[static_cast<uint8_t>(byte)];
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  const Table& map = table();
  std::string bytes;
  const char* at = token.data();
  while (at < token.data() + token.size()) {
    const char32_t c = next_char(at);
    if (c >= map.bytes.size() || map.bytes[c] < 0) return std::nullopt;
    bytes += static_cast<char>(map.bytes[c]);
  }
  return bytes;
}

}  // namespace hexad::text
