#include "lib/base/said/printable.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/utf8.hpp"

namespace hexad {
namespace {

enum class LineBreaks { kept, shown, indented };

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

// Marks that turn the direction of what follows: a name could be read backwards.
bool turns_direction(char32_t c) { return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069); }
// U+2028 and U+2029 are line breaks to some.
bool is_obeyed(char32_t c) { return (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || turns_direction(c); }

// Shows or keeps the ASCII character.
void append_ascii(char c, LineBreaks breaks, std::string& out) {
  const bool is_break = c == '\n' || c == '\t';
  if (is_plain(c) || (is_break && breaks != LineBreaks::shown)) {
    out += c;
    if (c == '\n' && breaks == LineBreaks::indented) out += "  ";
  } else if (is_break) {
    out += c == '\n' ? "\\n" : "\\t";
  } else if (c == 0x7f) {
    out += "\\u007f";
  } else {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
}

std::string shown(std::string_view text, LineBreaks breaks) {
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t broken = 0;
    const size_t valid = utf8_prefix(text, &broken);
    for (const char *at = text.data(), *const end = at + valid; at != end;) {
      const char* const begin = std::find_if_not(at, end, is_plain);
      out.append(at, begin);
      if ((at = begin) == end) break;
      const char32_t c = next_char(at);
      if (c < 0x80) {
        append_ascii(static_cast<char>(c), breaks, out);
      } else if (is_obeyed(c)) {
        out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
      } else {
        out.append(begin, at);
      }
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    for (const char c : text.substr(0, broken)) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(broken);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return shown(text, LineBreaks::kept); }
std::string one_line(std::string_view text) { return shown(text, LineBreaks::shown); }
std::string indented(std::string_view text) { return shown(text, LineBreaks::indented); }

}  // namespace hexad
