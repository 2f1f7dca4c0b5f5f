#include "plugins/environment/math/number/real_set.hpp"

#include <doctest/doctest.h>

#include "plugins/environment/math/latex/latex.hpp"
#include "plugins/environment/math/number/polynomial.hpp"

using namespace hexad::math;

namespace {

bool equal_as_sets(const std::string& a, const std::string& b) {
  const auto x = real_set(*read_latex(a)), y = real_set(*read_latex(b));
  return x && y && equal_real_sets(*x, *y);
}
bool solves(const std::string& relation, const std::string& set) {
  const auto x = solution_set(*read_latex(relation)), y = real_set(*read_latex(set));
  return x && y && equal_real_sets(*x, *y);
}

}  // namespace

TEST_CASE("pieces of the line are joined") {
  CHECK(equal_as_sets("[1,2]\\cup[2,3]", "[1,3]"));
  CHECK(equal_as_sets("(1,2)\\cup\\{2\\}\\cup(2,3)", "(1,3)"));
  CHECK_FALSE(equal_as_sets("(1,2)\\cup(2,3)", "(1,3)"));
  CHECK(equal_as_sets("\\mathbb{R}\\setminus\\{1\\}", "(-\\infty,1)\\cup(1,\\infty)"));
  CHECK(equal_as_sets("(-\\infty,\\infty)", "\\mathbb{R}"));
  CHECK_FALSE(real_set(*read_latex("\\mathbb{Z}")));
  CHECK_FALSE(real_set(*read_latex("\\{a,b\\}")));
}

TEST_CASE("where relations hold") {
  CHECK(solves("x^2<4", "(-2,2)"));
  CHECK(solves("x^2-3x+2\\ge0", "(-\\infty,1]\\cup[2,\\infty)"));
  CHECK(solves("1<x<2", "(1,2)"));
  CHECK(solves("|x-1|\\le2", "[-1,3]"));
  CHECK(solves("|x|>1", "(-\\infty,-1)\\cup(1,\\infty)"));
  CHECK(solves("x^2\\ne0", "(-\\infty,0)\\cup(0,\\infty)"));
  CHECK(solves("x^3=x", "\\{-1,0,1\\}"));
  CHECK_FALSE(solution_set(*read_latex("xy<1")));
}

TEST_CASE("real roots") {
  const auto roots = real_roots({6, -5, -2, 1});  // (x-1)(x-3)(x+2)
  REQUIRE(roots);
  REQUIRE(roots->size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(abs((*roots)[i] - std::vector<int>{-2, 1, 3}[i]) < 1e-40);
  CHECK(real_roots({1, 0, 1})->empty());
  CHECK(real_roots({1, -2, 1})->size() == 1);
  CHECK_FALSE(real_roots({}));
}
