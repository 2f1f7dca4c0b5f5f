#include "lib/text/template/value/string_literal.hpp"

#include <cstdint>

#include "lib/text/template/fault.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

constexpr std::string_view simple_names = "ntr\\'\"abfv";
constexpr std::string_view simple_values = "\n\t\r\\'\"\a\b\f\v";

uint32_t read_digits(std::string_view text, size_t& at, size_t count, int base) {
  uint32_t value = 0;
  size_t read = 0;
  for (; read < count && at < text.size(); ++read, ++at) {
    const char c = text[at];
    const int digit = c >= '0' && c <= '9'                     ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= base) break;
    value = value * base + digit;
  }
  if (base == 16 && read < count) fault("an escape in a string is cut short: {} hexadecimal digits are wanted", count);
  return value;
}

}  // namespace

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i++];
      continue;
    }
    const char kind = text[i + 1];
    i += 2;
    if (const size_t simple = simple_names.find(kind); simple != std::string_view::npos) {
      out += simple_values[simple];
    } else if (kind == '\n') {
      continue;  // the line goes on
    } else if (kind >= '0' && kind <= '7') {
      append_code_point(out, read_digits(text, --i, 3, 8));
    } else if (kind == 'x' || kind == 'u' || kind == 'U') {
      const uint32_t code = read_digits(text, i, kind == 'x' ? 2 : kind == 'u' ? 4 : 8, 16);
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        fault("\\{}{:x} in a string is not a character", kind, code);
      append_code_point(out, code);
    } else if (kind == 'N') {
      fault("\\N{{...}} in strings is not supported: write the character itself or \\uXXXX");
    } else {
      (out += '\\') += kind;
    }
  }
  return out;
}

}  // namespace hexad::text::jinja
