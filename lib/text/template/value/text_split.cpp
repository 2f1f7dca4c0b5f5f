#include "lib/text/template/value/text_split.hpp"

#include <algorithm>
#include <set>

#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

bool is_line_end(uint32_t code) {
  return (code >= '\n' && code <= '\r') || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

size_t last_code_point(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
  return begin;
}

// The length of the text without the white space at its end, and where its last word begins.
size_t word_begin(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t previous = last_code_point(text.substr(0, begin));
    size_t position = previous;
    if (is_space(next_code_point(text, position))) break;
    begin = previous;
  }
  return begin;
}

size_t word_end(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    const size_t before = position;
    if (is_space(next_code_point(text, position))) return before;
  }
  return text.size();
}

}  // namespace

std::string_view strip(std::string_view text, bool left, bool right) {
  if (left) text.remove_prefix(leading_space(text));
  if (right) text.remove_suffix(trailing_space(text));
  return text;
}

std::string_view strip_characters(std::string_view text, std::string_view set, bool left, bool right) {
  std::set<uint32_t> characters;
  for (size_t i = 0; i < set.size();) characters.insert(next_code_point(set, i));
  while (left && !text.empty()) {
    size_t position = 0;
    if (!characters.contains(next_code_point(text, position))) break;
    text.remove_prefix(position);
  }
  while (right && !text.empty()) {
    const size_t begin = last_code_point(text);
    size_t position = begin;
    if (!characters.contains(next_code_point(text, position))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, int64_t most, bool from_right) {
  std::vector<std::string_view> pieces;
  while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    pieces.push_back(from_right ? text.substr(at + separator.size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + separator.size());
  }
  pieces.push_back(text);
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> split_space(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string_view> pieces;
  for (text = strip(text, !from_right, from_right); !text.empty(); text = strip(text, !from_right, from_right)) {
    if (most >= 0 && static_cast<int64_t>(pieces.size()) == most) {
      pieces.push_back(text);
      break;
    }
    if (from_right) {
      const size_t begin = word_begin(text);
      pieces.push_back(text.substr(begin));
      text = text.substr(0, begin);
    } else {
      const size_t end = word_end(text);
      pieces.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
  }
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0, position = 0; position < text.size();) {
    const size_t before = position;
    const uint32_t code = next_code_point(text, position);
    const bool ended = is_line_end(code);
    if (code == '\r' && position < text.size() && text[position] == '\n') ++position;
    if (ended || position == text.size()) {
      lines.push_back(text.substr(begin, (ended && !keep_ends ? before : position) - begin));
      begin = position;
    }
  }
  return lines;
}

std::string replace(std::string_view text, std::string_view old, std::string_view with, int64_t count, Budget& budget) {
  std::string out;
  if (count < 0) count = INT64_MAX;
  size_t position = 0;
  while (count-- > 0) {
    // An empty `old` matches before every character and at the end.
    const size_t at = old.empty() ? position : text.find(old, position);
    if (at == std::string_view::npos) break;
    budget.allocate(with.size() + at - position);
    out.append(text, position, at - position).append(with);
    position = at + old.size();
    if (!old.empty()) continue;
    if (position == text.size()) return out;
    const size_t before = position;
    next_code_point(text, position);
    out.append(text, before, position - before);
  }
  return out.append(text, position);
}

}  // namespace hexad::text::jinja
