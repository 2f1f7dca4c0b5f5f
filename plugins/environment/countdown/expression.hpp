// Integer expressions as the numbers game writes them: + - * / and parentheses, evaluated exactly.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace countdown {

struct Expression {
  int64_t numerator = 0, denominator = 1;  // the value in lowest terms, denominator > 0
  std::vector<int64_t> numbers;            // as they stand in the text
};

// × x ÷ − and blanks are understood; an equals sign ends the expression ("6 * 7 = 42"). Nothing if the text is no
// expression, divides by zero, leaves 64 bits, or nests deeper than 64.
std::optional<Expression> evaluate(std::string_view text);

}  // namespace countdown
