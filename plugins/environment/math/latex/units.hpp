// Units of measure behind an answer.
#pragma once
#include <string>

namespace hexad::math {

// Without a \text{..} at the end (its exponent too) and without up to two unit words at the end. A text that would
// become empty stays.
std::string without_units(const std::string& text);

}  // namespace hexad::math
