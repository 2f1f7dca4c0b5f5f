#include "lib/text/text_width.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace hexad::text {
namespace {

struct Decoded {
  size_t bytes;
  char32_t code;  // 0xFFFD: not UTF-8, one byte
};

constexpr char32_t kBroken = 0xFFFD;

Decoded decoded_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {1, first};
  const size_t bytes = first >= 0xf0 && first < 0xf5   ? 4
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xc2 && first < 0xe0 ? 2
                                                       : 0;
  if (bytes == 0 || at + bytes > text.size()) return {1, kBroken};
  char32_t code = first & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {1, kBroken};
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  return {bytes, code};
}

bool within(char32_t code, const auto& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return code >= range[0] && code <= range[1]; });
}

// The large blocks of Unicode's EastAsianWidth W and F, and of its marks (Mn).
constexpr std::array<std::array<char32_t, 2>, 9> kWide = {{{0x1100, 0x115f},
                                                           {0x2e80, 0x303e},
                                                           {0x3041, 0xa4cf},
                                                           {0xac00, 0xd7a3},
                                                           {0xf900, 0xfaff},
                                                           {0xfe30, 0xfe6f},
                                                           {0xff00, 0xff60},
                                                           {0x1f300, 0x1faff},
                                                           {0x20000, 0x3fffd}}};
constexpr std::array<std::array<char32_t, 2>, 4> kMarks = {
    {{0x300, 0x36f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}}};

size_t width_of(char32_t code) { return within(code, kMarks) ? 0 : within(code, kWide) ? 2 : 1; }

// Where the part of `text` ends that fits into `width`.
size_t fitting(std::string_view text, size_t width) {
  size_t at = 0;
  for (size_t used = 0; at < text.size();) {
    const Decoded c = decoded_at(text, at);
    used += width_of(c.code);
    if (used > width) break;
    at += c.bytes;
  }
  return at;
}

// Where the first line of `text` ends, past its indentation of `indent` blanks. It has a word where `text` has one,
// however narrow it is, so that what is left becomes shorter.
size_t line_end(std::string_view text, size_t indent, size_t width) {
  const size_t fits = fitting(text, width), word = text.find_first_not_of(' ');
  if (fits == text.size() || word == std::string_view::npos) return fits;
  for (const std::string_view gap : {std::string_view("  "), std::string_view(" ")}) {
    const size_t at = text.rfind(gap, fits);
    if (at == std::string_view::npos) continue;
    const size_t begin = text.find_last_not_of(' ', at);
    const size_t least =
        gap.size() == 2 ? std::max(indent, width / 2) : indent;  // half a line is worth more than a field
    if (begin != std::string_view::npos && begin >= least) return begin + 1;
  }
  return std::min(text.find(' ', std::max(fits, word)), text.size());
}

std::string wrapped_line(std::string line, size_t width) {
  std::string lines;
  for (size_t indent = 0;;) {
    const size_t end = line_end(line, indent, width);
    lines += line.substr(0, end);
    const size_t next = line.find_first_not_of(' ', end);
    if (next == std::string::npos) return lines;
    lines += '\n';
    line = "  " + line.substr(next);
    indent = 2;
  }
}

}  // namespace

size_t text_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    const Decoded c = decoded_at(text, at);
    width += width_of(c.code);
    at += c.bytes;
  }
  return width;
}

std::string cut_to_width(std::string_view text, size_t width) {
  if (text_width(text) <= width) return std::string(text);
  const size_t dots = std::min<size_t>(3, width);
  return std::string(text.substr(0, fitting(text, width - dots))) + std::string(dots, '.');
}

std::string padded(std::string_view text, size_t width) {
  const std::string cell = cut_to_width(text, width);
  return cell + std::string(width - text_width(cell), ' ');
}

std::string wrapped(std::string_view text, size_t width) {
  std::string lines;
  for (size_t at = 0;;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines += wrapped_line(std::string(text.substr(at, end - at)), width);
    if (end == text.size()) return lines;
    lines += '\n';
    at = end + 1;
  }
}

}  // namespace hexad::text
