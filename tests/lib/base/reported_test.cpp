// Numbers that others report beside one's own.
#include "lib/base/said/reported.hpp"

#include <doctest/doctest.h>

#include "lib/base/said/once.hpp"

using hexad::add_reported;

TEST_CASE("what plugins report is added, and a name that is taken keeps its value") {
  std::map<std::string, double> values = {{"reward", 0.5}};
  add_reported(values, {{"reward", 777}, {"speed", 2}});
  add_reported(values, {{"speed", 3}, {"Reward", 1}});
  CHECK(values == std::map<std::string, double>{{"reward", 0.5}, {"speed", 2}, {"Reward", 1}});
}

TEST_CASE("what is said once is said once") {
  CHECK(hexad::first_time("of a test"));
  CHECK_FALSE(hexad::first_time("of a test"));
  CHECK(hexad::first_time("of a test, another"));
}
