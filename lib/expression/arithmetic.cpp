#include "lib/expression/arithmetic.hpp"

#include <cmath>
#include <limits>
#include <numeric>

namespace hexad::expression {
namespace {

using Maybe = std::optional<Value>;

Maybe whole_quotient(Op op, int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) {  // the processor traps on the least integer, also for the remainder
    int64_t negative = 0;
    if (op == Op::modulo) return Value(0);
    return __builtin_sub_overflow(int64_t{0}, a, &negative) ? std::nullopt : Maybe(Value(negative));
  }
  const int64_t rest = a % b;
  const bool round_down = rest != 0 && (rest < 0) != (b < 0);
  if (op == Op::modulo) return Value(round_down ? rest + b : rest);
  return Value(a / b - (round_down ? 1 : 0));
}

Maybe whole_arithmetic(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == Op::add)
    overflow = __builtin_add_overflow(a, b, &result);
  else if (op == Op::subtract)
    overflow = __builtin_sub_overflow(a, b, &result);
  else if (op == Op::multiply)
    overflow = __builtin_mul_overflow(a, b, &result);
  else
    return whole_quotient(op, a, b);
  return overflow ? std::nullopt : Maybe(Value(result));
}

// CPython's float_divmod: floor(a / b) alone is wrong where the division rounds up to an integer.
double real_quotient(Op op, double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (op == Op::modulo) return rest == 0 ? std::copysign(0.0, b) : rest;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

double real_arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    default: break;
  }
  if (b == 0) return std::numeric_limits<double>::quiet_NaN();
  return op == Op::divide ? a / b : real_quotient(op, a, b);
}

std::optional<double> number(const Value& value) {
  if (const int64_t* whole = std::get_if<int64_t>(&value.data)) return static_cast<double>(*whole);
  const double* real = std::get_if<double>(&value.data);
  return real ? std::optional(*real) : std::nullopt;
}

}  // namespace

std::optional<Value> arithmetic(Op op, const Value& a, const Value& b) {
  const int64_t *i = std::get_if<int64_t>(&a.data), *j = std::get_if<int64_t>(&b.data);
  if (i && j && op != Op::divide) return whole_arithmetic(op, *i, *j);
  const std::optional<double> x = number(a), y = number(b);
  if (!x || !y) return std::nullopt;
  const double result = real_arithmetic(op, *x, *y);
  return std::isfinite(result) ? Maybe(Value(result)) : std::nullopt;
}

std::optional<Value> gcd(int64_t a, int64_t b) {
  const auto magnitude = [](int64_t n) { return n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); };
  const uint64_t divisor = std::gcd(magnitude(a), magnitude(b));
  const bool fits = divisor <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return fits ? Maybe(Value(static_cast<int64_t>(divisor))) : std::nullopt;
}

}  // namespace hexad::expression
