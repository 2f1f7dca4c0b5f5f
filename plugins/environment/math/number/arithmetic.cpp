#include "plugins/environment/math/number/arithmetic.hpp"

#include <algorithm>

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

constexpr size_t kLongestArithmetic = 2000;
constexpr int kDeepestArithmetic = 90;  // brackets and signs; Python's compiler has a like limit

class ArithmeticReader {
 public:
  explicit ArithmeticReader(std::u32string_view text) : text_(text) { skip(); }

  Expression whole() {
    Expression result = additive();
    return at_ == text_.size() ? result : nullptr;
  }

 private:
  char32_t get(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0'; }
  void skip() {
    while (get() == ' ' || get() == '\n' || get() == '\t' || get() == '\f') ++at_;
  }
  void next(size_t count = 1) {
    at_ += count;
    skip();
  }

  Expression additive() {
    Expression left = multiplicative();
    while (left && (get() == '+' || get() == '-')) {
      const bool minus = get() == '-';
      next();
      const Expression right = multiplicative();
      left = right ? sum(left, minus ? negated(right) : right) : nullptr;
    }
    return left;
  }
  Expression multiplicative() {
    Expression left = with_sign();
    while (left && ((get() == '*' && get(1) != '*') || get() == '/')) {
      const bool division = get() == '/';
      next();
      const Expression right = with_sign();
      if (!right) return nullptr;
      left = division ? product(left, power(right, rational(-1))) : product(left, right);
    }
    return left;
  }
  Expression with_sign() {
    if (get() != '+' && get() != '-') return powers();
    const bool minus = get() == '-';
    next();
    if (++depth_ > kDeepestArithmetic) return nullptr;
    const Expression inner = with_sign();
    return inner && minus ? negated(inner) : inner;
  }
  Expression powers() {
    const Expression base = primary();
    const bool raised = get() == '^' || (get() == '*' && get(1) == '*');
    if (!base || !raised) return base;
    next(get() == '^' ? 1 : 2);
    if (++depth_ > kDeepestArithmetic) return nullptr;
    const Expression exponent = with_sign();
    return exponent ? power(base, exponent) : nullptr;
  }
  Expression primary() {
    if (get() != '(') return number();
    next();
    if (++depth_ > kDeepestArithmetic) return nullptr;
    Expression inner = additive();
    if (!inner || get() != ')') return nullptr;
    next();
    return inner;
  }
  Expression number() {
    std::string digits;
    for (; (get() >= '0' && get() <= '9') || get() == '.'; ++at_) digits += static_cast<char>(get());
    skip();
    const bool padded = digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos;
    if (padded && digits.find('.') == digits.npos) return nullptr;
    return read_number(digits);
  }

  std::u32string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

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

Expression read_arithmetic(std::u32string_view text) {
  return text.size() > kLongestArithmetic ? nullptr : ArithmeticReader(text).whole();
}

}  // namespace hexad::math
