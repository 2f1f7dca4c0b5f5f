#include "plugins/environment/math/evaluate.hpp"

#include <boost/math/constants/constants.hpp>

namespace hexad::math {
namespace {

using MaybeComplex = std::optional<Complex>;

constexpr int kMostSteps = 30000;
constexpr int kMostTerms = 1000;
constexpr int kLargestChoice = 64;

// SplitMix64, over a name.
uint64_t hashed(std::string_view name, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u;
  const auto mix = [&](uint64_t with) {
    state += with + 0x9E3779B97F4A7C15u;
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
    state ^= state >> 31;
  };
  for (const char c : name) mix(static_cast<unsigned char>(c));
  mix(seed);
  return state;
}
// In (0.3, 2.3), with 52 random bits.
Real place(uint64_t hash) { return Real(hash >> 12) / Real(uint64_t{1} << 51) + Real(3) / 10; }

const Real& pi() {
  static const Real made = boost::math::constants::pi<Real>();
  return made;
}
const Real& tiny() {
  static const Real made("1e-50");
  return made;
}
const Real& huge() {
  static const Real made("1e100000");
  return made;
}
// Angles beyond have no digits left to speak of.
constexpr double kWidestAngle = 1e15;
bool zero(const Complex& a) { return a.re == 0 && a.im == 0; }
bool good(const Real& a) { return isfinite(a) && abs(a) < huge(); }
MaybeComplex checked(Complex a) { return good(a.re) && good(a.im) ? MaybeComplex(a) : MaybeComplex(); }
// Without the noise that rounding leaves beside the larger part: branches of log and roots hang on its sign.
Complex clean(Complex a) {
  if (abs(a.im) < tiny() * abs(a.re)) a.im = 0;
  if (abs(a.re) < tiny() * abs(a.im)) a.re = 0;
  return a;
}

Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
Complex operator*(const Complex& a, const Complex& b) {
  if (a.im == 0 && b.im == 0) return {a.re * b.re, 0};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
MaybeComplex over(const Complex& a, const Complex& b) {
  const Real size = b.re * b.re + b.im * b.im;
  if (size == 0) return {};
  if (a.im == 0 && b.im == 0) return Complex{a.re / b.re, 0};
  return checked({(a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size});
}
Complex times_i(const Complex& a) { return {-a.im, a.re}; }

Real modulus(const Complex& a) { return a.im == 0 ? Real(abs(a.re)) : Real(sqrt(a.re * a.re + a.im * a.im)); }
MaybeComplex exp_of(const Complex& a) {
  if (abs(a.re) > 200000 || abs(a.im) > kWidestAngle) return {};
  const Real size = exp(a.re);
  if (a.im == 0) return Complex{size, 0};
  return checked({size * cos(a.im), size * sin(a.im)});
}
MaybeComplex log_of(const Complex& unclean) {
  const Complex a = clean(unclean);
  if (zero(a)) return {};
  if (a.im == 0) return Complex{log(abs(a.re)), a.re < 0 ? pi() : Real(0)};
  return Complex{log(modulus(a)), atan2(a.im, a.re)};
}
MaybeComplex power_of(const Complex& base, const Complex& exponent) {
  if (exponent.im == 0 && exponent.re == floor(exponent.re) && abs(exponent.re) <= 64) {
    const int n = static_cast<int>(exponent.re);
    if (zero(base) && n <= 0) return n == 0 ? MaybeComplex(Complex{1, 0}) : MaybeComplex();
    Complex result{1, 0};
    for (int i = 0; i < std::abs(n); ++i) result = result * base;
    return n < 0 ? over({1, 0}, result) : checked(result);
  }
  if (zero(base)) return exponent.re > 0 ? MaybeComplex(Complex{}) : MaybeComplex();
  if (base.re > 0 && base.im == 0 && exponent.im == 0) {
    if (exponent.re == Real(1) / 2) return Complex{sqrt(base.re), 0};
    return exp_of({log(base.re) * exponent.re, 0});
  }
  const MaybeComplex logarithm = log_of(base);
  return logarithm ? exp_of(*logarithm * exponent) : MaybeComplex();
}
MaybeComplex sqrt_of(const Complex& a) { return power_of(clean(a), {Real(1) / 2, 0}); }

// sin and cos by exponentials, or directly for reals.
MaybeComplex sine(const Complex& a, bool cosine) {
  if (abs(a.re) > kWidestAngle || abs(a.im) > 200000) return {};
  if (a.im == 0) return Complex{cosine ? cos(a.re) : sin(a.re), 0};
  const Real up = exp(a.im), down = 1 / up, ch = (up + down) / 2, sh = (up - down) / 2;
  return cosine ? checked({cos(a.re) * ch, -sin(a.re) * sh}) : checked({sin(a.re) * ch, cos(a.re) * sh});
}
MaybeComplex circular(std::string_view name, const Complex& a) {
  const MaybeComplex s = sine(a, false), c = sine(a, true);
  if (!s || !c) return {};
  // At a pole rounding leaves a number where nothing is.
  const auto part = [](const Complex& top, const Complex& bottom) {
    return modulus(bottom) < tiny() ? MaybeComplex() : over(top, bottom);
  };
  const Complex one{1, 0};
  return name == "sin"   ? s
         : name == "cos" ? c
         : name == "tan" ? part(*s, *c)
         : name == "cot" ? part(*c, *s)
         : name == "sec" ? part(one, *c)
                         : part(one, *s);
}
MaybeComplex hyperbolic(std::string_view name, const Complex& a) {
  const MaybeComplex up = exp_of(a), down = exp_of({-a.re, -a.im});
  if (!up || !down) return {};
  const Complex ch = (*up + *down) * Complex{Real(1) / 2, 0}, sh = (*up - *down) * Complex{Real(1) / 2, 0};
  return name == "sinh"   ? MaybeComplex(sh)
         : name == "cosh" ? MaybeComplex(ch)
         : name == "tanh" ? over(sh, ch)
                          : over(ch, sh);
}

// Inverse functions by their logarithms (Abramowitz and Stegun 4.4.26 to 4.4.28, 4.6.20 to 4.6.22).
MaybeComplex arc_sine(const Complex& a) {
  const MaybeComplex root = sqrt_of(Complex{1, 0} - a * a);
  const MaybeComplex logarithm = root ? log_of(times_i(a) + *root) : MaybeComplex();
  return logarithm ? MaybeComplex(Complex{logarithm->im, -logarithm->re}) : MaybeComplex();
}
MaybeComplex arc_tangent(const Complex& a) {
  if (a.im == 0) return Complex{atan(a.re), 0};
  const MaybeComplex up = log_of(Complex{1, 0} + times_i(a)), down = log_of(Complex{1, 0} - times_i(a));
  if (!up || !down) return {};
  const Complex difference = *up - *down;
  return Complex{difference.im / 2, -difference.re / 2};
}
MaybeComplex arc_hyperbolic(std::string_view name, const Complex& a) {
  const Complex one{1, 0};
  if (name == "atanh") {
    const MaybeComplex up = log_of(one + a), down = log_of(one - a);
    return up && down ? MaybeComplex((*up - *down) * Complex{Real(1) / 2, 0}) : MaybeComplex();
  }
  MaybeComplex root;
  if (name == "asinh") root = sqrt_of(a * a + one);
  if (name == "acosh") {
    const MaybeComplex up = sqrt_of(a + one), down = sqrt_of(a - one);
    if (up && down) root = *up * *down;
  }
  return root ? log_of(a + *root) : MaybeComplex();
}

MaybeComplex unary_function(const std::string& name, const Complex& a) {
  for (const std::string_view known : {"sin", "cos", "tan", "cot", "sec", "csc"}) {
    if (name == known) return circular(name, a);
  }
  for (const std::string_view known : {"sinh", "cosh", "tanh"}) {
    if (name == known) return hyperbolic(name, a);
  }
  for (const std::string_view known : {"asinh", "acosh", "atanh"}) {
    if (name == known) return arc_hyperbolic(name, a);
  }
  if (name == "exp") return exp_of(a);
  if (name == "abs") return Complex{modulus(a), 0};
  if (name == "asin") return arc_sine(a);
  if (name == "atan") return arc_tangent(a);
  if (name == "acos") {
    const MaybeComplex sine = arc_sine(a);
    return sine ? MaybeComplex(Complex{pi() / 2, 0} - *sine) : MaybeComplex();
  }
  if (name == "acsc" || name == "asec" || name == "acot") {
    const MaybeComplex inverse = over({1, 0}, a);
    return inverse ? unary_function(name == "acsc"   ? "asin"
                                    : name == "asec" ? "acos"
                                                     : "atan",
                                    *inverse)
                   : MaybeComplex();
  }
  if ((name == "floor" || name == "ceil") && a.im == 0) {
    const Real nearest = round(a.re);
    if (abs(a.re - nearest) < tiny() * (1 + abs(a.re))) return Complex{nearest, 0};
    return Complex{name == "floor" ? floor(a.re) : ceil(a.re), 0};
  }
  return {};
}

// n over a whole number.
MaybeComplex binomial(const Complex& n, const Complex& k) {
  if (k.im != 0 || k.re != floor(k.re) || k.re < 0 || k.re > kLargestChoice) return {};
  Complex result{1, 0};
  for (int i = 0; i < static_cast<int>(k.re); ++i)
    result = result * (n - Complex{Real(i), 0}) * Complex{1 / Real(i + 1), 0};
  return checked(result);
}

class Evaluator {
 public:
  Evaluator(uint64_t seed, const Bindings& bound) : seed_(seed), bound_(bound) {}

  MaybeComplex of(const Node& a) {
    if (++steps_ > kMostSteps) return {};
    switch (a.kind) {
      case Kind::rational:
      case Kind::decimal: return checked({Real(numerator(a.value)) / Real(denominator(a.value)), 0});
      case Kind::hundredth: return Complex{Real(1) / 100, 0};
      case Kind::symbol: return of_symbol(a);
      case Kind::constant: return of_constant(a.name);
      case Kind::add:
      case Kind::mul: {
        Complex total{a.is(Kind::add) ? 0 : 1, 0};
        for (const Expression& arg : a.args) {
          const MaybeComplex one = of(*arg);
          if (!one) return {};
          total = a.is(Kind::add) ? total + *one : total * *one;
        }
        return checked(total);
      }
      case Kind::power: {
        const MaybeComplex base = of(*a.args[0]), exponent = of(*a.args[1]);
        return base && exponent ? power_of(clean(*base), *exponent) : MaybeComplex();
      }
      case Kind::function: return of_function(a);
      case Kind::applied: return of_unknown(a);
      default: return {};
    }
  }

 private:
  MaybeComplex of_symbol(const Node& a) {
    if (const auto bound = bound_.find(a.name); bound != bound_.end()) return bound->second;
    const uint64_t hash = hashed(a.name, seed_);
    const Real size = place(hash);
    // The first points have one sign for all, later ones mix them.
    const bool negative = seed_ == 0 ? false : seed_ == 1 ? true : (hash & 1) != 0;
    return Complex{negative ? Real(-size) : size, a.real ? Real(0) : place(hashed(a.name, seed_ + 1000))};
  }
  static MaybeComplex of_constant(const std::string& name) {
    if (name == "pi") return Complex{pi(), 0};
    if (name == "E") return Complex{boost::math::constants::e<Real>(), 0};
    if (name == "I") return Complex{0, 1};
    if (name == "EulerGamma") return Complex{boost::math::constants::euler<Real>(), 0};
    return {};
  }
  // A smooth function that depends on the name alone.
  MaybeComplex of_unknown(const Node& a) {
    Complex angle{place(hashed(a.name, 7)), 0};
    for (size_t i = 0; i < a.args.size(); ++i) {
      const MaybeComplex one = of(*a.args[i]);
      if (!one) return {};
      angle = angle + Complex{place(hashed(a.name, 11 + i)), 0} * *one;
    }
    return sine(angle, false);
  }
  MaybeComplex of_function(const Node& a) {
    if (a.name == "sum" || a.name == "product") return of_series(a);
    if (a.name == "derivative") return of_derivative(a);
    if (const auto number = exact(a)) return Complex{Real(numerator(*number)) / Real(denominator(*number)), 0};
    std::vector<Complex> args;
    for (const Expression& arg : a.args) {
      const MaybeComplex one = of(*arg);
      if (!one) return {};
      args.push_back(*one);
    }
    if (a.name == "log" && args.size() == 2) {
      const MaybeComplex top = log_of(args[0]), bottom = log_of(args[1]);
      return top && bottom ? over(*top, *bottom) : MaybeComplex();
    }
    if (args.size() == 1) return unary_function(a.name, args[0]);
    if (a.name == "binomial" && args.size() == 2) return binomial(args[0], args[1]);
    for (const Complex& arg : args) {
      if (arg.im != 0) return {};
    }
    if ((a.name == "max" || a.name == "min") && !args.empty()) {
      Real best = args[0].re;
      for (const Complex& arg : args) {
        if (a.name == "max" ? arg.re > best : arg.re < best) best = arg.re;
      }
      return Complex{best, 0};
    }
    if (a.name == "mod" && args[1].re != 0) return Complex{args[0].re - args[1].re * floor(args[0].re / args[1].re), 0};
    return {};
  }
  // By the five-point formula; with a step of 1e-12 its error is near 1e-48.
  MaybeComplex of_derivative(const Node& a) {
    const MaybeComplex place = of(*a.args[1]);
    if (!place) return {};
    const std::string& name = a.args[1]->name;
    const auto outer = bound_.find(name) == bound_.end() ? MaybeComplex() : MaybeComplex(bound_[name]);
    static const Real step("1e-12");
    Complex total{};
    bool defined = true;
    for (const auto& [steps, weight] : {std::pair{-2, 1}, {-1, -8}, {1, 8}, {2, -1}}) {
      bound_[name] = *place + Complex{step * steps, 0};
      const MaybeComplex there = defined ? of(*a.args[0]) : MaybeComplex();
      defined = there.has_value();
      if (there) total = total + Complex{Real(weight), 0} * *there;
    }
    bound_.erase(name);
    if (outer) bound_[name] = *outer;
    return defined ? over(total, {12 * step, 0}) : MaybeComplex();
  }
  MaybeComplex of_series(const Node& a) {
    const auto from = exact(*a.args[2]), to = exact(*a.args[3]);
    if (!from || !to || denominator(*from) != 1 || denominator(*to) != 1 || *to - *from > kMostTerms) return {};
    const std::string& name = a.args[1]->name;
    const auto outer = bound_.find(name) == bound_.end() ? MaybeComplex() : MaybeComplex(bound_[name]);
    Complex total{a.name == "sum" ? 0 : 1, 0};
    bool defined = true;
    for (Integer i = numerator(*from); i <= numerator(*to) && defined; ++i) {
      bound_[name] = {Real(i), 0};
      const MaybeComplex term = of(*a.args[0]);
      defined = term.has_value();
      if (term) total = a.name == "sum" ? total + *term : total * *term;
    }
    bound_.erase(name);
    if (outer) bound_[name] = *outer;
    return defined ? checked(total) : MaybeComplex();
  }

  uint64_t seed_;
  int steps_ = 0;
  Bindings bound_;
};

std::optional<Real> real_value(const Node& a) {
  if (has_symbols(a)) return {};
  const auto number = value(a, 0);
  if (!number || clean(*number).im != 0) return {};
  return number->re;
}

}  // namespace

std::optional<Complex> value(const Node& a, uint64_t seed, const Bindings& bound) {
  return Evaluator(seed, bound).of(a);
}

bool has_symbols(const Node& a) {
  if (a.is(Kind::symbol) || a.is(Kind::applied)) return true;
  for (const Expression& arg : a.args) {
    if (has_symbols(*arg)) return true;
  }
  return false;
}

std::optional<int> real_order(const Node& a, const Node& b) {
  const auto infinity = [](const Node& x) { return x.is_constant("oo") ? 1 : x.is_constant("-oo") ? -1 : 0; };
  const auto left = exact(a), right = exact(b);
  if (left && right) return *left < *right ? -1 : *left > *right ? 1 : 0;
  const auto x = real_value(a), y = real_value(b);
  if ((!x && !infinity(a)) || (!y && !infinity(b))) return {};
  if (infinity(a) || infinity(b)) {
    const int order = infinity(a) - infinity(b);
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const Real difference = *x - *y;
  if (abs(difference) < tiny() * (1 + abs(*x))) return 0;
  return difference < 0 ? -1 : 1;
}

bool not_real(const Node& a) {
  if (a.is(Kind::symbol)) return !a.real;
  if (has_symbols(a)) return false;
  const auto number = value(a, 0);
  return number && clean(*number).im != 0;
}

}  // namespace hexad::math
