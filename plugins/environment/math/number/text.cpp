#include <algorithm>

#include "plugins/environment/math/latex/latex.hpp"

namespace hexad::math {
namespace {

constexpr size_t kMostDigits = 4300;  // Python's limit for integers in text
constexpr int kLargestExponent = 1000;

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Integer integer_of(std::string_view digits) {
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits.empty() ? Integer(0) : Integer(std::string(digits));  // a leading zero would mean octal
}

}  // namespace

Expression read_number(std::string_view text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > kMostDigits) return nullptr;
  const size_t mark = text.find_first_of("eE");
  int exponent = 0;
  if (mark != text.npos) {
    std::string_view power = text.substr(mark + 1);
    const bool down = power.starts_with('-');
    if (down || power.starts_with('+')) power.remove_prefix(1);
    if (!all_digits(power) || power.size() > 9) return nullptr;
    exponent = std::stoi(std::string(power)) * (down ? -1 : 1);
    if (std::abs(exponent) > kLargestExponent) return nullptr;
  }
  const std::string_view mantissa = text.substr(0, mark);
  const size_t point = mantissa.find('.');
  const std::string_view whole = mantissa.substr(0, point);
  const std::string_view part = point == mantissa.npos ? "" : mantissa.substr(point + 1);
  if ((!whole.empty() && !all_digits(whole)) || (!part.empty() && !all_digits(part)) || whole.size() + part.size() == 0)
    return nullptr;
  Rational value = integer_of(std::string(whole) + std::string(part));
  const int shift = exponent - static_cast<int>(part.size());
  const Integer scale = pow(Integer(10), static_cast<unsigned>(std::abs(shift)));
  value = shift < 0 ? Rational(value / scale) : Rational(value * scale);
  if (minus) value = -value;
  return point == mantissa.npos && mark == text.npos ? rational(value) : decimal(value);
}

}  // namespace hexad::math
