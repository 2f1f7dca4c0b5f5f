#include "plugins/environment/math/latex/latex.hpp"

#include <doctest/doctest.h>

#include "plugins/environment/math/latex/rewrite.hpp"

using namespace hexad::math;

TEST_CASE("the contents of boxes") {
  CHECK(box_contents("a \\boxed{\\frac{1}{2}} b", false) == "\\frac{1}{2}");
  CHECK(box_contents("\\boxed{1}, \\fbox{2}", false) == "1,2");
  CHECK(box_contents("\\boxed{1} and then, much later and far away \\boxed{2}", true) == "1,2");
  CHECK(box_contents("\\boxed{1} and then, much later and far away, much further than seventy letters, \\boxed{2}",
                     true) == "2");
  CHECK(box_contents("\\boxed{3} \\boxed{3}", false) == "3");
  CHECK(box_contents("\\boxed 5", false) == "5");
  CHECK(box_contents("\\boxed{open", false) == "{open");
  CHECK(box_contents("none", false) == "none");
}

TEST_CASE("units at the end go") {
  CHECK(without_units("5\\text{ cm}^2") == "5");
  CHECK(without_units("5 m/s") == "5 m/s");
  CHECK(without_units("12 hours") == "12");
  CHECK(without_units("\\text{cm}") == "\\text{cm}");
}

TEST_CASE("LaTeX gets one form") {
  CHECK(normalize_latex("\\boxed{\\dfrac12}", true) == "\\frac{1}{2}");
  CHECK(normalize_latex("\\left( 1, 2 \\right)", false) == "( 1, 2 )");
  CHECK(normalize_latex("3/4", false) == "\\frac{3}{4}");
  CHECK(normalize_latex("\\sqrt2+\\sqrt 3", false) == "\\sqrt{2}+\\sqrt{3}");
  CHECK(normalize_latex("x=1 \\text{ or } x=2", false) == "x=1, x=2");
  CHECK(normalize_latex("\\$5", false) == "5");
  CHECK(normalize_latex(".5", false) == "\\frac{1}{2}");
  CHECK_THROWS_AS(normalize_latex(std::string(kLongestLatex + 1, 'x'), false), TooMuch);
}
