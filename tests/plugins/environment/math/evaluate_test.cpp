#include "plugins/environment/math/evaluate.hpp"

#include <doctest/doctest.h>

#include "plugins/environment/math/equality.hpp"
#include "plugins/environment/math/latex/latex.hpp"

using namespace hexad::math;

namespace {

bool same_value(const std::string& a, const std::string& b) { return identical(*read_latex(a), *read_latex(b)); }

}  // namespace

TEST_CASE("exact values") {
  CHECK(exact(*read_latex("\\frac{1}{2}+\\frac{1}{3}")) == Rational(5) / 6);
  CHECK(exact(*read_latex("8^{2/3}")) == 4);
  CHECK(exact(*read_latex("5!-\\gcd(12,18)+|{-3}|")) == 117);
  CHECK(exact(*read_latex("\\lfloor{-3.5}\\rfloor")) == -4);
  CHECK_FALSE(exact(*read_latex("\\sqrt{2}")));
  CHECK_FALSE(exact(*read_latex("9^{9^{9}}")));
  CHECK_FALSE(exact(*read_latex("0^{-1}")));
  CHECK(exact(*read_latex("0.1\\cdot30")) == 3);                      // 53 bits, as decimals are computed with
  CHECK(exact(*read_latex("0.1+0.2")) != exact(*read_latex("0.3")));  // and their noise
}

TEST_CASE("identities hold at every point, near misses at none") {
  CHECK(same_value("\\sin^2x+\\cos^2x", "1+0x"));
  CHECK(same_value("(x+y)^3", "x^3+3x^2y+3xy^2+y^3"));
  CHECK(same_value("\\sqrt{x^2}", "|x|"));
  CHECK_FALSE(same_value("\\sqrt{x^2}", "x"));
  CHECK_FALSE(same_value("\\ln(xy)", "\\ln x+\\ln y"));  // not of negative numbers
  CHECK(same_value("\\frac{d}{dx}x^3", "3x^2"));
  CHECK(same_value("\\sum_{k=1}^{4}kx", "10x"));
  CHECK(same_value("\\binom{n}{2}", "\\frac{n(n-1)}{2}"));
  CHECK(same_value("\\tan(\\arctan x)", "x"));
  CHECK_FALSE(same_value("x+10^{-20}", "x"));
  CHECK_FALSE(same_value("f(x)", "f(y)"));
}

TEST_CASE("order of real numbers") {
  CHECK(real_order(*read_latex("\\sqrt{2}"), *read_latex("1.5")) == -1);
  CHECK(real_order(*read_latex("\\infty"), *read_latex("\\pi")) == 1);
  CHECK(real_order(*read_latex("\\sqrt{4}"), *read_latex("2")) == 0);
  CHECK_FALSE(real_order(*read_latex("x"), *read_latex("1")));
  CHECK(not_real(*read_latex("\\sqrt{-1}")));
}
