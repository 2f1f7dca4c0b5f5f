// LaTeX as people write answers, brought to the forms that the grammar reads. The rules are those of
// latex2sympy2_extended 1.11 (math_normalization.py): its defaults without the splitting of equations.
#pragma once
#include <string>
#include <string_view>

namespace hexad::math {

// Takes the contents of boxes (of the last only, where asked), drops \left, \right, spacing, dollar signs, quotes and
// a unit at the end, writes every fraction and root with braces, "a/b" of integers as \frac. Throws TooMuch, also for
// more than kLongestLatex bytes in the boxes.
inline constexpr size_t kLongestLatex = 4096;
std::string normalize_latex(std::string_view text, bool last_box_only);

}  // namespace hexad::math
