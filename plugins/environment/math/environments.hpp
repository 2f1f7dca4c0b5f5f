// LaTeX environments in running text: $$..$$, \[..\], $..$, \(..\), a bracketed word, a bare \frac of numbers.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "plugins/environment/math/candidates.hpp"

namespace hexad::math {

class EnvironmentScanner {
 public:
  // `boxed` accepts only environments with a \boxed{..} in them, and no bare \frac.
  EnvironmentScanner(std::u32string_view text, bool boxed) : text_(text), boxed_(boxed) {}

  // Up to six environments that start at `at`, joined by commas, "and" or "or"; the longest chain whose end (white
  // space and a percent sign included) is accepted.
  std::optional<Candidate> at(size_t at, const std::function<bool(size_t end)>& accepts) const;
  std::optional<Candidate> at(size_t at) const;

 private:
  struct Found {
    size_t begin, end;  // of the content
    size_t close;       // behind the closing mark
  };
  std::optional<Found> one(size_t at) const;
  std::optional<Found> display(size_t at) const;
  std::optional<Found> dollars(size_t at) const;
  std::optional<Found> commanded(size_t at, bool lines) const;
  std::optional<Found> bracketed(size_t at) const;
  std::optional<Found> fraction(size_t at) const;
  std::optional<Found> with_box(std::optional<Found> found) const;
  std::optional<Found> after_joint(size_t at) const;
  bool is(size_t at, std::u32string_view word) const {
    return text_.substr(std::min(at, text_.size())).starts_with(word);
  }

  // The first place of a mark at or behind `from`, or the text's size. Kept for the next question: questions come from
  // left to right, so that a mark that never comes is sought once.
  struct Next {
    std::u32string_view mark;
    size_t from = 1, place = 0;
    size_t operator()(std::u32string_view text, size_t start);
  };

  std::u32string_view text_;
  bool boxed_;
  mutable Next dollar_{U"$$"}, bracket_{U"\\]"}, paren_{U"\\)"}, line_{U"\n"}, box_{U"\\boxed{"}, brace_{U"}"};
};

}  // namespace hexad::math
