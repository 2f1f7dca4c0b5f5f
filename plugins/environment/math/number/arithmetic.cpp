#include "plugins/environment/math/number/arithmetic.hpp"

#include "plugins/environment/math/latex/latex.hpp"

namespace hexad::math {
namespace {

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

Expression read_arithmetic(std::u32string_view text) {
  return text.size() > kLongestArithmetic ? nullptr : ArithmeticReader(text).whole();
}

}  // namespace hexad::math
