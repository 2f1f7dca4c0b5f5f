// Where answers may stand in a text. The rules are those of math-verify 0.9 (math_verify/parser.py: its regular
// expressions and their priorities), read from the text directly: each rule takes linear time on any input, where a
// backtracking matcher takes quadratic or cubic time on a hostile one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hexad::math {

// One LaTeX environment of a candidate.
struct LatexPart {
  std::u32string text;
  bool percent = false;   // "%", "percent" and the like behind it
  bool bare_box = false;  // from the first \boxed{ to the last } of the text, outside of any environment
};

struct Candidate {
  enum class Kind { number, arithmetic, latex };
  Kind kind = Kind::number;
  size_t begin = 0, end = 0;        // code points
  std::u32string integer, decimal;  // number: "-1,234" and ".5"
  std::u32string text;              // arithmetic: digits and operators
  bool percent = false;             // number
  std::vector<LatexPart> parts;     // latex: up to six environments joined by commas, "and", "or"
};

// The places where a candidate may be announced, from the surest on.
enum class Anchor { final_answer_i_hope, final_answer_is_or_boxed, answer_colon, answer, anywhere };
inline constexpr Anchor kAnchors[] = {Anchor::final_answer_i_hope, Anchor::final_answer_is_or_boxed,
                                      Anchor::answer_colon, Anchor::answer, Anchor::anywhere};

// The candidates at one anchor in the order in which they are tried: those that end last first, of those the longer.
// `plain` also looks for numbers and arithmetic outside of LaTeX.
std::vector<Candidate> candidates(std::u32string_view text, Anchor anchor, bool plain);

}  // namespace hexad::math
