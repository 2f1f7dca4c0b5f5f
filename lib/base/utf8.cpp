#include "lib/base/utf8.hpp"

#include <cstring>

namespace hexad {
namespace {

// Size of the valid UTF-8 sequence at the front of `text`, or 0 with `broken` set to the size of the maximal part.
size_t sequence_size(std::string_view text, size_t& broken) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  broken = 1;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < size; ++i) {
    broken = i;
    if (i >= text.size()) return 0;
    const uint8_t b = byte(i);
    if (i == 1 ? (b < low || b > high) : (b & 0xC0) != 0x80) return 0;
  }
  return size;
}

}  // namespace

size_t ascii_prefix(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

size_t utf8_prefix(std::string_view text, size_t* broken) {
  size_t unused = 0;
  size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    if (at == text.size()) break;
    const size_t size = sequence_size(text.substr(at), broken ? *broken : unused);
    if (size == 0) return at;
    at += size;
  }
  return at;
}

namespace {

// The place itself, or the beginning of the character that it is within.
size_t boundary_before(std::string_view text, size_t at) {
  constexpr size_t kLongest = 4;
  for (size_t begin = at; begin > 0 && at - begin < kLongest; --begin)
    if ((static_cast<uint8_t>(text[begin]) & 0xC0) != 0x80) return begin;
  return at;
}

}  // namespace

std::string_view utf8_front(std::string_view text, size_t most) {
  return text.size() <= most ? text : text.substr(0, boundary_before(text, most));
}

std::string shortened(std::string_view text, size_t most) {
  return std::string(utf8_front(text, most)) + (text.size() > most ? " ..." : "");
}

std::string_view utf8_back(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t begin = text.size() - most;
  if (most > 0 && boundary_before(text, begin) < begin) {
    while (begin < text.size() && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) ++begin;
  }
  return text.substr(begin);
}

std::string_view valid_utf8(std::string_view text, std::string& buffer) {
  size_t broken = 0;
  size_t good = utf8_prefix(text, &broken);
  if (good == text.size()) return text;
  buffer.clear();
  while (true) {
    buffer.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) return buffer;
    buffer += "\xEF\xBF\xBD";
    text.remove_prefix(broken);
    good = utf8_prefix(text, &broken);
  }
}

}  // namespace hexad
