#include "core/environment/answer.hpp"

#include <doctest/doctest.h>

using namespace hexad::environment;

TEST_CASE("numbers have one canonical form") {
  CHECK(canonical_number(" 1,234.50 ") == "1234.5");
  CHECK(canonical_number("-0") == "0");
  CHECK(canonical_number("+07") == "7");
  CHECK(canonical_number(".5") == "0.5");
  CHECK(canonical_number("3.") == "3");
  CHECK(canonical_number("0.0") == "0");
  CHECK_FALSE(canonical_number("1,23"));
  CHECK_FALSE(canonical_number("12a"));
  CHECK_FALSE(canonical_number("--1"));
  CHECK_FALSE(canonical_number(""));
}

TEST_CASE("the last number of a text") {
  CHECK(last_number("I think 3-4") == "4");
  CHECK(last_number("it is -4.") == "-4");
  CHECK(last_number("1,000,000 people") == "1000000");
  CHECK(last_number("in 2,34") == "34");
  CHECK(last_number("x=.25") == "0.25");
  CHECK_FALSE(last_number("no digits"));
}

TEST_CASE("normalised text") {
  CHECK(normalized(" A  b.\n", true) == "a b");
  CHECK(normalized("A", false) == "A");
  CHECK(normalized(".", true) == ".");
  CHECK(normalized("", true).empty());
}
