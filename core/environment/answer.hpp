// Finding and comparing short answers in text.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace hexad::environment {

// As text::comparable, and without a final full stop.
std::string normalized(std::string_view text, bool ignore_case);

// A decimal number in a canonical form: "1,234.50" and "+1234.5" are "1234.5", "-0" is "0". Nothing if it is not a
// number.
std::optional<std::string> canonical_number(std::string_view text);

// The last number in the text, canonical. A minus sign belongs to it unless a digit or letter precedes ("3-4" ends in
// 4).
std::optional<std::string> last_number(std::string_view text);

}  // namespace hexad::environment
