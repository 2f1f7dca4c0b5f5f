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

TEST_CASE("boxed answers balance their braces") {
  CHECK(last_boxed("a \\boxed{\\frac{1}{2}} b") == "\\frac{1}{2}");
  CHECK(last_boxed("\\fbox{3} \\boxed{open") == "3");
  CHECK_FALSE(last_boxed("nothing"));
}

TEST_CASE("answers agree by value or by text") {
  CHECK(same_answer("\\dfrac{3}{4}", "3/4"));
  CHECK(same_answer("-\\frac{1}{2}", "-0.5"));
  CHECK(same_answer("$1{,}000$", "1{,}000"));
  CHECK(same_answer("50\\%", "50"));
  CHECK_FALSE(same_answer("1/0", "2/0"));
  CHECK_FALSE(same_answer("", ""));
  CHECK_FALSE(same_answer("x", "y"));
}

TEST_CASE("normalised text") {
  CHECK(normalized(" A  b.\n", true) == "a b");
  CHECK(normalized("A", false) == "A");
  CHECK(normalized(".", true) == ".");
  CHECK(normalized("", true).empty());
}
