#include "plugins/environment/math/environments.hpp"

#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

constexpr size_t kMostEnvironments = 6;

bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }

size_t behind_space(std::u32string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

// -?\d+([.,]\d+)?, its end, or `at` if there is none.
size_t behind_number(std::u32string_view text, size_t at) {
  size_t i = at;
  if (i < text.size() && text[i] == '-') ++i;
  const size_t digits = i;
  while (i < text.size() && is_ascii_digit(text[i])) ++i;
  if (i == digits) return at;
  if (i + 1 < text.size() && (text[i] == '.' || text[i] == ',') && is_ascii_digit(text[i + 1])) {
    for (++i; i < text.size() && is_ascii_digit(text[i]);) ++i;
  }
  return i;
}

}  // namespace

size_t EnvironmentScanner::Next::operator()(std::u32string_view text, size_t start) {
  if (start < from || start > place) {
    from = start;
    place = std::min(text.find(mark, start), text.size());
  }
  return place;
}

std::optional<EnvironmentScanner::Found> EnvironmentScanner::display(size_t at) const {
  const size_t content = at + 2, close = dollar_(text_, content);
  if (close >= text_.size() || close == content || text_[close - 1] == '\\') return {};
  return Found{content, close, close + 2};
}

std::optional<EnvironmentScanner::Found> EnvironmentScanner::dollars(size_t at) const {
  for (size_t i = at + 1; i < text_.size() && text_[i] != '\n'; ++i) {
    if (text_[i] == '$') return i == at + 1 ? std::nullopt : std::optional(Found{at + 1, i, i + 1});
    if (text_[i] == '\\' && i + 1 < text_.size() && text_[i + 1] == '$') ++i;
  }
  return {};
}

// \[..\] over lines, or \(..\) in one.
std::optional<EnvironmentScanner::Found> EnvironmentScanner::commanded(size_t at, bool lines) const {
  const size_t content = at + 2;
  const size_t end = (lines ? bracket_ : paren_)(text_, content);
  if (end >= text_.size() || end == content || text_[end - 1] == '\\') return {};
  if (!lines && line_(text_, content) < end) return {};
  return Found{content, end, end + 2};
}

// " [..] " within a line and without brackets inside; it starts at the white space.
std::optional<EnvironmentScanner::Found> EnvironmentScanner::bracketed(size_t at) const {
  if (!is(at + 1, U"[")) return {};
  const size_t content = at + 2;
  for (size_t i = content; i < text_.size() && text_[i] != '\n' && text_[i] != '['; ++i) {
    if (text_[i] != ']') continue;
    if (i == content || i + 1 >= text_.size() || !is_space(text_[i + 1])) return {};
    return Found{content, i, i + 2};
  }
  return {};
}

std::optional<EnvironmentScanner::Found> EnvironmentScanner::fraction(size_t at) const {
  size_t i = at + (text_[at] == '-');
  if (!is(i, U"\\frac{")) return {};
  i += 6;
  for (const std::u32string_view behind : {U"}{", U"}"}) {
    const size_t end = behind_number(text_, i);
    if (end == i || !is(end, behind)) return {};
    i = end + behind.size();
  }
  return Found{at, i, i};
}

std::optional<EnvironmentScanner::Found> EnvironmentScanner::with_box(std::optional<Found> found) const {
  if (!found || !boxed_) return found;
  const size_t box = box_(text_, found->begin);
  if (box >= found->end || brace_(text_, box + 8) >= found->end) return {};
  return found;
}

std::optional<EnvironmentScanner::Found> EnvironmentScanner::one(size_t at) const {
  if (at >= text_.size()) return {};
  const char32_t c = text_[at], before = at > 0 ? text_[at - 1] : U' ';
  if (c == '$' && before != '\\') {
    if (is(at, U"$$")) {
      if (const auto found = with_box(display(at))) return found;
    }
    return is_ascii_digit(before) ? std::nullopt : with_box(dollars(at));
  }
  if (c == '\\' && before != '\\') {
    if (is(at, U"\\[")) return with_box(commanded(at, true));
    if (is(at, U"\\(")) return with_box(commanded(at, false));
  }
  if ((c == '\\' || c == '-') && !boxed_) return fraction(at);
  return is_space(c) ? with_box(bracketed(at)) : std::nullopt;
}

// What follows a joint at `at`: ",and", "and", ",or", "or" or ",".
std::optional<EnvironmentScanner::Found> EnvironmentScanner::after_joint(size_t at) const {
  for (const std::u32string_view joint : {U",and", U"and", U",or", U"or", U","}) {
    if (!is(at, joint)) continue;
    const size_t from = at + joint.size();
    for (size_t i = behind_space(text_, from) + 1; i-- > from;) {
      if (const auto found = one(i)) return found;
      if (i + 1 < behind_space(text_, from)) break;  // a bracket needs one white space before it, no more
    }
  }
  return {};
}

std::optional<Candidate> EnvironmentScanner::at(size_t at, const std::function<bool(size_t)>& accepts) const {
  std::optional<Found> found = one(at);
  if (!found) return {};
  Candidate chain, best;
  bool any = false;
  chain.kind = Candidate::Kind::latex;
  chain.begin = at;
  while (found) {
    size_t end = behind_space(text_, found->close);
    bool percent = false;
    for (const std::u32string_view word : {U"\\%", U"%", U"percent", U"Percent", U"pct", U"Pct"}) {
      if (!percent && is(end, word)) percent = true, end += word.size();
    }
    chain.parts.push_back({std::u32string(text_.substr(found->begin, found->end - found->begin)), percent, false});
    chain.end = end;
    if (accepts(end)) best = chain, any = true;
    found = chain.parts.size() < kMostEnvironments ? after_joint(behind_space(text_, end)) : std::nullopt;
  }
  return any ? std::optional(best) : std::nullopt;
}

std::optional<Candidate> EnvironmentScanner::at(size_t at) const {
  return this->at(at, [](size_t) { return true; });
}

}  // namespace hexad::math
