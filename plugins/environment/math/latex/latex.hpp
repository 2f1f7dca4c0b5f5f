// From LaTeX as people write answers to an expression: it is brought to the forms that the grammar reads
// (normalize.cpp), then read (latex.cpp).
#pragma once
#include <string>
#include <string_view>

#include "plugins/environment/math/expression.hpp"

namespace hexad::math {

// All contents of \boxed{..} and \fbox{..}, joined by commas; with `last_only` those of the last box and of boxes that
// stand right before it: within ten characters, or within seventy and joined by "and", "or", "," or ";". Repetitions
// once. A text without boxes comes back as it is; a last box that does not close gives all behind it.
std::string box_contents(std::string_view text, bool last_only);

// Without a \text{..} at the end (its exponent too) and without up to two unit words at the end. A text that would
// become empty stays.
std::string without_units(const std::string& text);

// Takes the contents of boxes (of the last only, where asked), drops \left, \right, spacing, dollar signs, quotes and
// a unit at the end, writes every fraction and root with braces, "a/b" of integers as \frac. Throws TooMuch, also for
// more than kLongestLatex bytes in the boxes.
inline constexpr size_t kLongestLatex = 4096;
std::string normalize_latex(std::string_view text, bool last_box_only);

// Normalized LaTeX, read as latex2sympy2_extended 1.11 does: "2\frac{1}{2}" is 5/2, "1,234" a number, "1,2" a set,
// "(1,2)" an open interval, "[2,1]" a pair, letters are real symbols in lower case unless the text looks like one of
// complex numbers. Where it cannot be read as it is, and is a chain of equations, its last side is. Nothing if it
// cannot be read. Throws TooMuch.
Expression read_latex(std::string_view normalized);

}  // namespace hexad::math
