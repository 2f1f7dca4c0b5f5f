#include "app/config/fold.hpp"

#include <doctest/doctest.h>

using hexad::config::folded;
using hexad::config::Problem;

TEST_CASE("notices that say the same are one, at the place of the first; errors and others stay") {
  const auto notice = Problem::Severity::notice, error = Problem::Severity::error;
  const std::vector<Problem> problems = {
      {error, {"a.yaml", 1, 1}, "a", "wrong"},   {error, {"a.yaml", 2, 1}, "b", "wrong"},
      {notice, {"a.yaml", 3, 1}, "c", "unused"}, {notice, {}, "d", "other"},
      {notice, {"a.yaml", 4, 1}, "e", "unused"}, {notice, {}, "", "unused"}};
  std::vector<std::string> lines;
  for (const Problem& problem : folded(problems)) lines.push_back(problem.text());
  CHECK(lines == std::vector<std::string>{"a.yaml:1:1: error: a: wrong", "a.yaml:2:1: error: b: wrong",
                                          "a.yaml:3:1: notice: c, e: unused", "notice: d: other", "notice: : unused"});
}
