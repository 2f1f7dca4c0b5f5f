// Numbers and arithmetic in running text, outside of LaTeX: "-1,234.5", "$12", "50 %", "3/4 + 1".
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "plugins/environment/math/candidates.hpp"

namespace hexad::math {

using Accepts = std::function<bool(size_t end)>;

class PlainScanner {
 public:
  explicit PlainScanner(std::u32string_view text) : text_(text) {}

  // At the start of the text, or at the white space or "=" that has to stand before it. The first reading in the order
  // of preference whose end is accepted: a whole number before a shorter one.
  std::optional<Candidate> number(size_t at, const Accepts& accepts) const;
  // Digits and operators up to a mark that ends them.
  std::optional<Candidate> arithmetic(size_t at, const Accepts& accepts) const;
  std::optional<Candidate> either(size_t at, const Accepts& accepts) const;

 private:
  std::vector<size_t> starts(size_t at) const;
  std::optional<Candidate> bare_number(size_t at, const Accepts& accepts) const;
  std::optional<Candidate> bare_arithmetic(size_t at, const Accepts& accepts) const;
  size_t digits(size_t at) const;                                    // the end of \d*
  bool ended(size_t at, const Accepts& accepts, size_t& end) const;  // does a closing mark stand here
  char32_t get(size_t at) const { return at < text_.size() ? text_[at] : U'\0'; }

  std::u32string_view text_;
  // A run of arithmetic: asked for from many starts, so kept.
  struct Run {
    size_t begin = 1, end = 0, last_close = 0, last_operator = 0;
    bool closes = false;
  };
  mutable Run run_;
};

}  // namespace hexad::math
