#include "plugins/environment/math/candidates.hpp"

#include <algorithm>

#include "plugins/environment/math/environments.hpp"
#include "plugins/environment/math/number/plain_numbers.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

bool anything(size_t) { return true; }

// Case folding of ASCII, enough for the words below.
bool says(std::u32string_view text, size_t at, std::string_view lower) {
  if (at + lower.size() > text.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    const char32_t c = text[at + i];
    if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != static_cast<unsigned char>(lower[i])) return false;
  }
  return true;
}

size_t skip_space(std::u32string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

// Calls `match` at every place from left to right, past each match found.
template <typename Match>
void find_each(std::u32string_view text, std::vector<Candidate>& found, const Match& match) {
  for (size_t at = 0; at <= text.size();) {
    std::optional<Candidate> candidate = match(at);
    if (!candidate) {
      ++at;
      continue;
    }
    const size_t end = candidate->end;
    candidate->begin = at;
    found.push_back(std::move(*candidate));
    at = std::max(end, at + 1);
  }
}

// \.?\s?I hope
bool hopes(std::u32string_view text, size_t at, size_t& end) {
  for (const bool point : {true, false}) {
    if (point && (at >= text.size() || text[at] != '.')) continue;
    const size_t behind = at + point;
    for (const bool space : {true, false}) {
      if (space && (behind >= text.size() || !is_space(text[behind]))) continue;
      if (text.substr(std::min(behind + space, text.size())).starts_with(U"I hope")) {
        end = behind + space + 6;
        return true;
      }
    }
  }
  return false;
}

// What the two kinds of things, LaTeX and plain, are called by the anchors.
class Finder {
 public:
  Finder(std::u32string_view text, bool plain) : text_(text), plain_(plain), latex_(text, false), numbers_(text) {}

  void final_answer_i_hope(std::vector<Candidate>& found) const {
    for (const bool latex : {false, true}) {
      if (!latex && !plain_) continue;
      find_each(text_, found, [&](size_t at) -> std::optional<Candidate> {
        if (!says(text_, at, "final answer is")) return {};
        for (const size_t colon : {size_t{1}, size_t{0}}) {
          if (colon && (at + 15 >= text_.size() || text_[at + 15] != ':')) continue;
          const size_t from = at + 15 + colon;
          size_t end = 0;
          auto candidate = behind_space(from, latex, [&](size_t behind) { return hopes(text_, behind, end); });
          if (!candidate) continue;
          hopes(text_, candidate->end, end);
          candidate->end = end;
          return candidate;
        }
        return {};
      });
    }
  }

  // "final answer ... is: X", with up to a hundred characters between; X in LaTeX may run over lines.
  void final_answer_is(std::vector<Candidate>& found) const {
    for (const bool latex : {false, true}) {
      if (!latex && !plain_) continue;
      find_each(text_, found, [&](size_t at) -> std::optional<Candidate> {
        if (!says(text_, at, "final answer")) return {};
        for (size_t i = at + 12; i <= std::min(at + 112, text_.size()); ++i) {
          if (i > at + 12 && !latex && text_[i - 1] == '\n') break;
          const size_t is = skip_space(text_, i);
          if (is == i || text_.substr(is, 2) != U"is") continue;
          const size_t colon = is + 2 < text_.size() && text_[is + 2] == ':' ? 1 : 0;
          for (const size_t from : {is + 2 + colon, is + 2}) {
            auto candidate = latex ? behind_space(from, true, anything) : numbers_.either(from, anything);
            if (candidate) return candidate;
          }
        }
        return {};
      });
    }
  }

  void boxed(std::vector<Candidate>& found) const {
    const size_t first = text_.find(U"\\boxed{"), last = text_.rfind(U'}');
    if (first == text_.npos) return;
    const EnvironmentScanner scanner(text_, true);
    find_each(text_, found, [&](size_t at) { return scanner.at(at); });
    if (last == text_.npos || last < first + 8) return;
    Candidate all;
    all.kind = Candidate::Kind::latex;
    all.begin = first, all.end = last + 1;
    all.parts.push_back({std::u32string(text_.substr(first, last + 1 - first)), false, true});
    found.push_back(std::move(all));
  }

  // "answer" (and a colon), then X within fifty characters, or within a hundred when "=" stands before it.
  void answer(std::vector<Candidate>& found, bool colon) const {
    const auto announced = [&](size_t at) {
      return says(text_, at, "answer") && (!colon || (at + 6 < text_.size() && text_[at + 6] == ':'));
    };
    const size_t length = colon ? 7 : 6;
    if (plain_) {
      find_each(text_, found, [&](size_t at) {
        return announced(at) ? plain_behind_answer(at + length) : std::optional<Candidate>();
      });
    }
    find_each(text_, found, [&](size_t at) -> std::optional<Candidate> {
      if (!announced(at)) return {};
      for (size_t i = at + length; i <= std::min(at + length + 50, text_.size()); ++i) {
        if (auto candidate = latex_.at(i)) return candidate;
      }
      return {};
    });
  }

  void anywhere(std::vector<Candidate>& found) const {
    if (plain_) {
      find_each(text_, found, [&](size_t at) { return numbers_.arithmetic(at, anything); });
      find_each(text_, found, [&](size_t at) { return numbers_.number(at, anything); });
    }
    find_each(text_, found, [&](size_t at) { return latex_.at(at); });
  }

 private:
  std::optional<Candidate> thing(size_t at, bool latex, const Accepts& accepts) const {
    return latex ? latex_.at(at, accepts) : numbers_.either(at, accepts);
  }
  // \s*X: the white space, or all of it but one character that X itself starts with.
  std::optional<Candidate> behind_space(size_t from, bool latex, const Accepts& accepts) const {
    const size_t most = skip_space(text_, from);
    for (size_t i = most + 1; i-- > from && i + 2 > most;) {
      if (auto candidate = thing(i, latex, accepts)) return candidate;
    }
    return {};
  }
  std::optional<Candidate> plain_behind_answer(size_t from) const {
    // The number may not be the left side of an equation.
    const auto no_equation = [&](size_t end) {
      const size_t next = skip_space(text_, end);
      return next >= text_.size() || text_[next] != '=';
    };
    size_t line = from;
    while (line < text_.size() && line < from + 100 && text_[line] != '\n') ++line;
    for (size_t equals = line + 1; equals-- > from;) {
      if (equals >= text_.size() || text_[equals] != '=') continue;
      if (auto candidate = behind_space(equals + 1, false, no_equation)) return candidate;
    }
    for (size_t i = from; i <= std::min(from + 50, line); ++i) {
      if (auto candidate = numbers_.either(i, no_equation)) return candidate;
    }
    return {};
  }

  std::u32string_view text_;
  bool plain_;
  EnvironmentScanner latex_;
  PlainScanner numbers_;
};

}  // namespace

std::vector<Candidate> candidates(std::u32string_view text, Anchor anchor, bool plain) {
  const Finder finder(text, plain);
  std::vector<Candidate> found;
  switch (anchor) {
    case Anchor::final_answer_i_hope: finder.final_answer_i_hope(found); break;
    case Anchor::final_answer_is_or_boxed:
      finder.final_answer_is(found);
      finder.boxed(found);
      break;
    case Anchor::answer_colon: finder.answer(found, true); break;
    case Anchor::answer: finder.answer(found, false); break;
    case Anchor::anywhere: finder.anywhere(found); break;
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.end != b.end ? a.end > b.end : a.begin < b.begin;
  });
  return found;
}

}  // namespace hexad::math
