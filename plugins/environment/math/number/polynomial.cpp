#include "plugins/environment/math/number/polynomial.hpp"

#include <algorithm>

namespace hexad::math {
namespace {

using MaybePolynomial = std::optional<Polynomial>;

const Real& nothing() {
  static const Real made("1e-42");
  return made;
}

Polynomial trimmed_polynomial(Polynomial a) {
  while (!a.empty() && abs(a.back()) < nothing()) a.pop_back();
  return a;
}

MaybePolynomial times(const Polynomial& a, const Polynomial& b) {
  if (a.empty() || b.empty()) return Polynomial{};
  if (a.size() + b.size() > kHighestDegree + 2) return {};
  Polynomial result(a.size() + b.size() - 1, Real(0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) result[i + j] += a[i] * b[j];
  }
  return trimmed_polynomial(std::move(result));
}

Polynomial plus(Polynomial a, const Polynomial& b) {
  if (a.size() < b.size()) a.resize(b.size(), Real(0));
  for (size_t i = 0; i < b.size(); ++i) a[i] += b[i];
  return trimmed_polynomial(std::move(a));
}

MaybePolynomial polynomial_in_symbol(const Node& a) {
  if (a.is(Kind::symbol)) return a.real ? MaybePolynomial(Polynomial{0, 1}) : MaybePolynomial();
  if (!has_symbols(a)) {
    const auto number = value(a, 0);
    if (!number || abs(number->im) > nothing()) return {};
    return trimmed_polynomial({number->re});
  }
  if (a.is(Kind::add) || a.is(Kind::mul)) {
    MaybePolynomial total = a.is(Kind::add) ? Polynomial{} : Polynomial{1};
    for (const Expression& arg : a.args) {
      const MaybePolynomial one = polynomial_in_symbol(*arg);
      if (!one) return {};
      total = a.is(Kind::add) ? MaybePolynomial(plus(*total, *one)) : times(*total, *one);
      if (!total) return {};
    }
    return total;
  }
  if (!a.is(Kind::power) || !a.args[1]->is_integer() || a.args[1]->value < 0 || a.args[1]->value > kHighestDegree)
    return {};
  const MaybePolynomial base = polynomial_in_symbol(*a.args[0]);
  MaybePolynomial result = Polynomial{1};
  for (int i = 0; base && result && i < static_cast<int>(numerator(a.args[1]->value)); ++i)
    result = times(*result, *base);
  return base ? result : MaybePolynomial();
}

void collect_names(const Node& a, std::vector<std::string>& names) {
  if (a.is(Kind::symbol) && std::find(names.begin(), names.end(), a.name) == names.end()) names.push_back(a.name);
  for (const Expression& arg : a.args) collect_names(*arg, names);
}

// Halving between two places of different sign.
Real root_between(const Polynomial& polynomial, Real low, Real high) {
  const bool rising = polynomial_at(polynomial, high) > 0;
  for (int i = 0; i < 260; ++i) {
    const Real middle = (low + high) / 2;
    ((polynomial_at(polynomial, middle) > 0) == rising ? high : low) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::vector<std::string> symbol_names(const Node& a) {
  std::vector<std::string> names;
  collect_names(a, names);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Polynomial> polynomial_of(const Expression& a) {
  return symbol_names(*a).size() == 1 ? polynomial_in_symbol(*a) : MaybePolynomial();
}

Real polynomial_at(const Polynomial& polynomial, const Real& x) {
  Real result = 0;
  for (size_t i = polynomial.size(); i-- > 0;) result = result * x + polynomial[i];
  return result;
}

// Between two neighbouring roots of the derivative lies at most one root.
std::optional<std::vector<Real>> real_roots(const Polynomial& polynomial) {
  if (polynomial.empty()) return {};
  std::vector<Real> roots;
  if (polynomial.size() == 1) return roots;
  if (polynomial.size() == 2) return std::vector<Real>{-polynomial[0] / polynomial[1]};
  Polynomial derivative;
  for (size_t i = 1; i < polynomial.size(); ++i) derivative.push_back(polynomial[i] * static_cast<unsigned>(i));
  Real bound = 0, size = 0;  // Cauchy's bound on the roots
  for (const Real& coefficient : polynomial) {
    if (const Real ratio = abs(coefficient / polynomial.back()); ratio > bound) bound = ratio;
    if (abs(coefficient) > size) size = abs(coefficient);
  }
  bound += 1;
  std::vector<Real> places{-bound};
  const auto turns = real_roots(derivative);
  if (turns) places.insert(places.end(), turns->begin(), turns->end());
  places.push_back(bound);
  static const Real tolerance("1e-38");
  const auto is_zero = [&](const Real& x) { return abs(polynomial_at(polynomial, x)) < tolerance * (1 + size); };
  for (size_t i = 0; i < places.size(); ++i) {
    if (i > 0 && !is_zero(places[i - 1]) && !is_zero(places[i]) &&
        (polynomial_at(polynomial, places[i - 1]) > 0) != (polynomial_at(polynomial, places[i]) > 0))
      roots.push_back(root_between(polynomial, places[i - 1], places[i]));
    if (is_zero(places[i])) roots.push_back(places[i]);
  }
  return roots;
}

}  // namespace hexad::math
