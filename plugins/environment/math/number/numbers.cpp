#include <algorithm>

#include "plugins/environment/math/equality.hpp"
#include "plugins/environment/math/evaluate.hpp"

namespace hexad::math {
namespace {

constexpr int kPoints = 4;       // that have to agree
constexpr int kMostPoints = 12;  // that are tried, undefined ones included
constexpr int kDecimals = 6;
constexpr unsigned kDigits = 15;

// The number of a percentage; else the expression itself.
const Node& without_percent(const Node& a) {
  const bool percent = a.is(Kind::mul) && a.args.size() == 2 && a.args[1]->is(Kind::hundredth);
  return percent ? *a.args[0] : a;
}
bool has_decimals(const Node& a) {
  return a.is(Kind::decimal) ||
         std::any_of(a.args.begin(), a.args.end(), [](const auto& arg) { return has_decimals(*arg); });
}

// In millionths, half to even; of large numbers only fifteen digits count.
Integer rounded(const Rational& a) {
  static const Integer large = pow(Integer(10), kDigits);
  Rational scaled = a * Rational(pow(Integer(10), kDecimals));
  if (Integer whole = abs(numerator(scaled)) / denominator(scaled); whole >= large) {
    unsigned excess = 0;
    for (; whole >= large; whole /= 10) ++excess;
    const Integer unit = pow(Integer(10), excess);
    return unit * rounded(scaled / Rational(unit * pow(Integer(10), kDecimals)));
  }
  const Integer top = numerator(scaled), bottom = denominator(scaled);
  Integer quotient = top / bottom, rest = top % bottom;
  if (rest < 0) rest += bottom, quotient -= 1;
  const Integer twice = 2 * rest;
  return twice > bottom || (twice == bottom && quotient % 2 != 0) ? Integer(quotient + 1) : quotient;
}

// What rounding to six decimals leaves of a number; whole numbers stay apart from decimals of their value.
struct Rounded {
  bool whole = false;
  Integer re, im;
  bool operator==(const Rounded&) const = default;
};
std::optional<Rounded> rounded_value(const Node& a) {
  if (const auto number = exact(a)) {
    if (denominator(*number) == 1 && !has_decimals(a)) return Rounded{true, numerator(*number), 0};
    return Rounded{false, rounded(*number), 0};
  }
  if (has_symbols(a)) return {};
  const auto number = value(a, 0);
  if (!number || abs(number->re) > 1e60 || abs(number->im) > 1e60) return {};
  const Real scale = Real(1000000);
  return Rounded{false, Integer(round(number->re * scale)), Integer(round(number->im * scale))};
}

bool near(const Complex& a, const Complex& b, const Real& tolerance) {
  const Real size = 1 + abs(a.re) + abs(a.im) + abs(b.re) + abs(b.im);
  return abs(a.re - b.re) <= tolerance * size && abs(a.im - b.im) <= tolerance * size;
}

bool equal_numbers(const Expression& a, const Expression& b) {
  const Node &left = without_percent(*a), &right = without_percent(*b);
  if (left.is_number() || right.is_number()) {
    if (left.is(Kind::decimal) || right.is(Kind::decimal)) {
      const auto x = rounded_value(*a), y = rounded_value(*b);
      return x && y && *x == *y;
    }
    if (left.is_integer() && right.is_integer()) return left.value == right.value;  // 9% and 9 agree
    return equal_exactly(*a, *b).value_or(false);
  }
  if (has_symbols(*a) || has_symbols(*b)) return false;
  // What is smaller than 2^-49 counts as nothing.
  static const Rational smallest(Integer(1), Integer(1) << 49);
  const auto p = exact(*a), q = exact(*b);
  if (p && q) return abs(*p - *q) < smallest;
  const auto x = value(*a, 0), y = value(*b, 0);
  if (!x || !y) return false;
  static const Real limit = ldexp(Real(1), -49), noise("1e-45");
  return near(*x, *y, noise) || (abs(x->re - y->re) < limit && abs(x->im - y->im) < limit);
}

bool equal_cells(const Node& a, const Node& b, bool (*agree)(const Expression&, const Expression&)) {
  if (a.rows != b.rows || a.columns != b.columns) return false;
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (!agree(a.args[i], b.args[i])) return false;
  }
  return true;
}

}  // namespace

bool identical(const Node& a, const Node& b) {
  const bool symbols = has_symbols(a) || has_symbols(b);
  static const Real tolerance("1e-40");
  int agreed = 0;
  for (int seed = 0; seed < (symbols ? kMostPoints : 1) && agreed < kPoints; ++seed) {
    const auto x = value(a, static_cast<uint64_t>(seed)), y = value(b, static_cast<uint64_t>(seed));
    if (!x || !y) continue;
    if (!near(*x, *y, tolerance)) return false;
    ++agreed;
  }
  return agreed >= (symbols ? 2 : 1);
}

bool equal_values(const Expression& a, const Expression& b) {
  if (has_matrix(*a) || has_matrix(*b)) {
    const Expression x = concrete_matrix(a), y = concrete_matrix(b);
    if (!x || !y) return false;
    return equal_cells(*x, *y, equal_numbers) ||
           equal_cells(*x, *y, [](const Expression& p, const Expression& q) { return identical(*p, *q); });
  }
  if (equal_numbers(a, b)) return true;
  const auto known = equal_exactly(*a, *b);
  return known ? *known : identical(*a, *b);
}

}  // namespace hexad::math
