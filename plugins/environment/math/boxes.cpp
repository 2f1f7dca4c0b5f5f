#include "plugins/environment/math/boxes.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "plugins/environment/math/latex/rewrite.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

// Where the brace that opens at `open` closes before `limit`.
std::optional<size_t> closing_brace(std::string_view text, size_t open, size_t limit) {
  size_t depth = 1;
  for (size_t i = open + 1; i < limit; ++i) {
    depth += text[i] == '{';
    if (text[i] == '}' && --depth == 0) return i;
  }
  return {};
}

bool joined_boxes(std::string_view between, bool same) {
  static const Rewrite separator(R"(\b(?:and|or)\b|,|;)", "");
  const size_t length = wide(between).size();
  return length < 10 || (!same && length < 70 && separator.found_in(between));
}

}  // namespace

std::string box_contents(std::string_view text, bool last_only) {
  std::vector<std::string> contents;  // from the last to the first
  std::optional<size_t> later;        // where the box found before this one starts
  size_t limit = text.size();
  size_t boxed = text.rfind("\\boxed"), fbox = text.rfind("\\fbox");
  while (limit > 0) {
    if (boxed != text.npos && boxed >= limit) boxed = text.substr(0, limit).rfind("\\boxed");
    if (fbox != text.npos && fbox >= limit) fbox = text.substr(0, limit).rfind("\\fbox");
    if (boxed == text.npos && fbox == text.npos) break;
    const bool is_boxed = fbox == text.npos || (boxed != text.npos && boxed > fbox);
    const size_t start = is_boxed ? boxed : fbox;
    size_t open = start + (is_boxed ? 6 : 5);
    while (open < limit && trimmed(text.substr(open, 1)).empty()) ++open;
    if (open >= limit) break;
    const auto close = text[open] == '{' ? closing_brace(text, open, limit) : std::nullopt;
    if (!close) {
      if (contents.empty()) contents.emplace_back(text.substr(open));
      break;
    }
    std::string content(trimmed(text.substr(open + 1, *close - open - 1)));
    if (last_only && later) {
      const bool same = !contents.empty() && contents.back() == content;
      if (!joined_boxes(text.substr(*close + 1, *later - *close - 1), same)) break;
    }
    if (contents.empty() || contents.back() != content) contents.push_back(std::move(content));
    later = start;
    limit = start;
  }
  if (contents.empty()) return std::string(text);
  std::string joined;
  for (size_t i = contents.size(); i-- > 0;) joined += contents[i] + (i ? "," : "");
  return joined;
}

}  // namespace hexad::math
