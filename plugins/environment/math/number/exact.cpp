#include "plugins/environment/math/number/exact.hpp"

#include <algorithm>

namespace hexad::math {
namespace {

using MaybeRational = std::optional<Rational>;

constexpr unsigned kLargestFactorial = 2000;
constexpr unsigned kLargestRoot = 64;

unsigned bits(const Rational& a) {
  const Integer top = abs(numerator(a)), bottom = denominator(a);
  return (top == 0 ? 0 : msb(top)) + msb(bottom) + 1;
}
MaybeRational bounded(Rational a) { return bits(a) <= kMostBits ? MaybeRational(std::move(a)) : MaybeRational(); }
bool whole(const Rational& a) { return denominator(a) == 1; }

std::optional<unsigned> small(const Rational& a, unsigned most) {
  if (!whole(a) || a < 0 || numerator(a) > most) return {};
  return static_cast<unsigned>(numerator(a));
}

Integer floor_of(const Rational& a) {
  Integer quotient = numerator(a) / denominator(a);
  return a < 0 && quotient * denominator(a) != numerator(a) ? Integer(quotient - 1) : quotient;
}

// The whole root of a whole number, if there is one; by bisection.
std::optional<Integer> whole_root(const Integer& a, unsigned degree) {
  Integer low = 0, high = Integer(1) << (msb(a + 1) / degree + 1);
  while (low < high) {
    const Integer middle = (low + high + 1) / 2;
    if (pow(middle, degree) <= a) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return pow(low, degree) == a ? std::optional(low) : std::nullopt;
}

MaybeRational power_of(const Rational& base, const Rational& exponent) {
  if (exponent == 0) return Rational(1);
  if (base == 0) return exponent > 0 ? MaybeRational(Rational(0)) : MaybeRational();
  if (base == 1) return base;
  const auto degree = small(Rational(denominator(exponent)), kLargestRoot);
  const auto times = small(Rational(abs(numerator(exponent))), kMostBits);
  if (!degree || !times || (base < 0 && *degree != 1)) return {};
  if (static_cast<uint64_t>(bits(base)) * *times / *degree > kMostBits) return {};
  Integer top = abs(numerator(base)), bottom = denominator(base);
  if (*degree > 1) {
    const auto top_root = whole_root(top, *degree), bottom_root = whole_root(bottom, *degree);
    if (!top_root || !bottom_root) return {};
    top = *top_root, bottom = *bottom_root;
  }
  top = pow(top, *times), bottom = pow(bottom, *times);
  if (base < 0 && *times % 2) top = -top;
  if (exponent > 0) return Rational(top, bottom);
  return top < 0 ? Rational(-bottom, -top) : Rational(bottom, top);
}

MaybeRational factorial_of(const Rational& a) {
  const auto n = small(a, kLargestFactorial);
  if (!n) return {};
  Integer result = 1;
  for (unsigned i = 2; i <= *n; ++i) result *= i;
  return Rational(result);
}

MaybeRational binomial_of(const Rational& a, const Rational& b) {
  const auto n = small(a, kLargestFactorial), k = small(b, kLargestFactorial);
  if (!n || !k) return {};
  if (*k > *n) return Rational(0);
  Integer result = 1;
  for (unsigned i = 0; i < *k; ++i) result = result * (*n - i) / (i + 1);
  return Rational(result);
}

MaybeRational common(const std::vector<Rational>& args, bool least_multiple) {
  Integer result = least_multiple ? 1 : 0;
  for (const Rational& arg : args) {
    if (!whole(arg)) return {};
    result = least_multiple ? Integer(lcm(result, numerator(arg))) : Integer(gcd(result, numerator(arg)));
  }
  return bounded(Rational(abs(result)));
}

MaybeRational function_of(const std::string& name, const std::vector<Rational>& args) {
  if (args.empty()) return {};
  const Rational& a = args[0];
  if (name == "max") return *std::max_element(args.begin(), args.end());
  if (name == "min") return *std::min_element(args.begin(), args.end());
  if (name == "gcd" || name == "lcm") return common(args, name == "lcm");
  if (args.size() == 2 && name == "binomial") return binomial_of(a, args[1]);
  if (args.size() == 2 && name == "mod") {
    if (args[1] == 0) return {};
    return Rational(a - args[1] * floor_of(a / args[1]));
  }
  if (args.size() != 1) return {};
  if (name == "abs") return Rational(abs(a));
  if (name == "floor") return Rational(floor_of(a));
  if (name == "ceil") return Rational(-floor_of(-a));
  if (name == "factorial") return factorial_of(a);
  return {};
}

// To 53 bits, half to even: the arithmetic of decimals.
Rational to_double_precision(const Rational& a) {
  constexpr int kBits = 53;
  if (a == 0) return a;
  Integer top = abs(numerator(a)), bottom = denominator(a);
  const int shift = kBits - (static_cast<int>(msb(top)) - static_cast<int>(msb(bottom)));
  (shift > 0 ? top : bottom) <<= static_cast<unsigned>(std::abs(shift));
  // Now top / bottom has 53 or 54 bits before the point; those that are too many go with the fraction.
  const unsigned extra = msb(Integer(top / bottom)) + 1 > kBits ? 1 : 0;
  bottom <<= extra;
  Integer quotient = top / bottom;
  const Integer twice = 2 * (top % bottom);
  if (twice > bottom || (twice == bottom && quotient % 2 != 0)) quotient += 1;
  const int back = static_cast<int>(extra) - shift;
  Rational result = back > 0 ? Rational(quotient << static_cast<unsigned>(back))
                             : Rational(quotient, Integer(1) << static_cast<unsigned>(-back));
  return a < 0 ? Rational(-result) : result;
}

// A decimal of more than fifteen digits keeps them all.
Rational literal(const Rational& a) {
  static const Integer most = pow(Integer(10), 15);
  const unsigned places = msb(denominator(a)) + 1;  // at least as many as there are behind the point
  Integer digits = abs(numerator(a)) * (pow(Integer(10), places) / denominator(a));
  while (digits >= most && digits % 10 == 0) digits /= 10;
  return digits < most ? to_double_precision(a) : a;
}

struct Value {
  Rational number;
  bool decimals = false;
};

std::optional<Value> value_of(const Node& a) {
  if (a.is(Kind::rational)) return Value{a.value, false};
  if (a.is(Kind::decimal)) return Value{literal(a.value), true};
  if (a.is(Kind::hundredth)) return Value{Rational(1) / 100, false};
  if (!a.is(Kind::add) && !a.is(Kind::mul) && !a.is(Kind::power) && !a.is(Kind::function)) return {};
  std::vector<Rational> args;
  bool decimals = false;
  for (const Expression& arg : a.args) {
    auto one = value_of(*arg);
    if (!one) return {};
    decimals |= one->decimals;
    args.push_back(std::move(one->number));
  }
  if (decimals) {
    for (Rational& arg : args) arg = to_double_precision(arg);
  }
  MaybeRational result;
  if (a.is(Kind::power)) {
    result = power_of(args[0], args[1]);
  } else if (a.is(Kind::function)) {
    result = function_of(a.name, args);
  } else {
    result = a.is(Kind::add) ? 0 : 1;
    for (const Rational& arg : args) {
      result = a.is(Kind::add) ? Rational(*result + arg) : Rational(*result * arg);
      if (decimals) result = to_double_precision(*result);
      if (bits(*result) > kMostBits) return {};
    }
  }
  if (!result) return {};
  return Value{decimals ? to_double_precision(*result) : *result, decimals};
}

}  // namespace

std::optional<Rational> exact(const Node& a) {
  auto result = value_of(a);
  return result ? MaybeRational(std::move(result->number)) : MaybeRational();
}

std::optional<bool> equal_exactly(const Node& a, const Node& b) {
  const auto x = value_of(a), y = value_of(b);
  if (!x || !y) return {};
  if (!x->decimals && !y->decimals) return x->number == y->number;
  return to_double_precision(x->number) == to_double_precision(y->number);
}

}  // namespace hexad::math
