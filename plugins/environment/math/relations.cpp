#include <algorithm>

#include "plugins/environment/math/equality.hpp"
#include "plugins/environment/math/number/polynomial.hpp"

namespace hexad::math {
namespace {

constexpr int kPointsOfCurve = 4;

Expression difference(const Expression& left, const Expression& right) { return sum(left, negated(right)); }

std::string_view flipped(std::string_view sign) {
  return sign == "<" ? ">" : sign == "<=" ? ">=" : sign == ">" ? "<" : sign == ">=" ? "<=" : sign;
}

// Solved for one symbol, in which it is linear, at the point of `seed`; nothing if it is not linear there.
std::optional<Complex> solved_for(const Node& f, const std::string& name, uint64_t seed) {
  std::optional<Complex> at[3];
  for (int i = 0; i < 3; ++i) {
    at[i] = value(f, seed, {{name, {Real(i), 0}}});
    if (!at[i]) return {};
  }
  const Real re = at[1]->re - at[0]->re, im = at[1]->im - at[0]->im, size = re * re + im * im;
  const Real bend = abs(at[2]->re - at[1]->re - re) + abs(at[2]->im - at[1]->im - im);
  if (size < 1e-60 || bend > 1e-35 * (1 + abs(re) + abs(im))) return {};
  return Complex{-(at[0]->re * re + at[0]->im * im) / size, -(at[0]->im * re - at[0]->re * im) / size};
}

bool close_values(const Complex& a, const Complex& b) {
  const Real size = 1 + abs(a.re) + abs(a.im);
  return abs(a.re - b.re) + abs(a.im - b.im) < 1e-35 * size;
}

// The same curve: solved for the first symbol in which both are linear; or one a constant times the other.
bool equal_curves(const Node& f, const Node& g) {
  const auto names = symbol_names(f);
  if (names.size() < 2 || names != symbol_names(g)) return false;
  for (const std::string& name : names) {
    int agreed = 0;
    for (uint64_t seed = 0; seed < kPointsOfCurve; ++seed) {
      const auto x = solved_for(f, name, seed), y = solved_for(g, name, seed);
      if (!x || !y) break;
      if (!close_values(*x, *y)) return false;
      ++agreed;
    }
    if (agreed == kPointsOfCurve) return true;
  }
  std::optional<Complex> ratio;
  for (uint64_t seed = 0; seed < kPointsOfCurve; ++seed) {
    const auto x = value(f, seed), y = value(g, seed);
    if (!x || !y) return false;
    const Real size = y->re * y->re + y->im * y->im;
    if (size == 0) return false;
    const Complex here{(x->re * y->re + x->im * y->im) / size, (x->im * y->re - x->re * y->im) / size};
    if (ratio && !close_values(*ratio, here)) return false;
    ratio = here;
  }
  return true;
}

// Claims without unknowns, or of one that nothing fulfils: solved, they are all the same to math-verify.
bool without_solutions(const Expression& f) {
  const size_t unknowns = symbol_names(*f).size();
  if (unknowns == 0) return true;
  const auto polynomial = polynomial_of(f);
  if (!polynomial || polynomial->empty()) return false;
  const auto roots = real_roots(*polynomial);
  return roots && roots->empty();
}

}  // namespace

bool equal_relations(const Expression& gold, const Expression& answer) {
  if (gold->is(Kind::conjunction) && answer->is(Kind::conjunction)) {
    return std::equal(gold->args.begin(), gold->args.end(), answer->args.begin(), answer->args.end(), equal_relations);
  }
  if (!gold->is(Kind::relation) || !answer->is(Kind::relation)) return false;
  const Expression &a = gold->args[0], &b = gold->args[1], &c = answer->args[0], &d = answer->args[1];
  if (!is_value(*a) || !is_value(*b) || !is_value(*c) || !is_value(*d)) return same(*gold, *answer);
  const Expression f = difference(a, b);
  if (gold->name == answer->name && equal_values(f, difference(c, d))) return true;
  if (gold->name == "!=") return false;
  if (flipped(gold->name) == answer->name && equal_values(f, difference(d, c))) return true;
  if (gold->name != "==" || answer->name != "==") return false;
  const Expression g = difference(c, d);
  return (without_solutions(f) && without_solutions(g)) || equal_curves(*f, *g);
}

}  // namespace hexad::math
