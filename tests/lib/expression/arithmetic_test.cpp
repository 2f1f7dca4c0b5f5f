#include "tests/lib/expression/expect.hpp"

using namespace hexad::expression;

TEST_CASE("arithmetic of integers") {
  check({{"2 + 3", "5"},
         {"2 - 3", "-1"},
         {"2 * 3", "6"},
         {"7 / 2", "3.5"},
         {"8 / 2", "4.0"},
         {"-tp", "-4"},
         {"--2", "2"}});
  check(
      {{"7 // 2", "3"}, {"-7 // 2", "-4"}, {"7 // -2", "-4"}, {"-7 // -2", "3"}, {"-8 // 2", "-4"}, {"0 // -3", "0"}});
  check({{"7 % 2", "1"}, {"-7 % 2", "1"}, {"7 % -2", "-1"}, {"-7 % -2", "-1"}, {"-8 % 2", "0"}, {"-1 % 3", "2"}});
  check({{"gcd(12, 18)", "6"}, {"gcd(-12, 18)", "6"}, {"gcd(0, 0)", "0"}, {"gcd(0, 5)", "5"}, {"gcd(1, 2.0)", "?"}});
}

TEST_CASE("arithmetic of numbers") {
  check({{"1 + 0.5", "1.5"},
         {"0.5 - 1", "-0.5"},
         {"0.5 * 4", "2.0"},
         {"1 / 0.5", "2.0"},
         {"-lr", "-0.5"},
         {"-0.0", "-0.0"}});
  check({{"7.5 // 2", "3.0"}, {"-7.5 // 2", "-4.0"}, {"7.5 % 2", "1.5"}, {"-7.5 % 2", "0.5"}, {"7.5 % -2", "-0.5"}});
  check({{"1 // 0.1", "9.0"}, {"-4.0 % 2", "0.0"}, {"4.0 % -2", "-0.0"}, {"0.5 // -2", "-1.0"}, {"0.0 // 2", "0.0"}});
  check({{"1e308 * 10", "?"}, {"-1e308 - 1e308", "?"}, {"1e-308 / 1e308", "0.0"}, {"nan + 1", "?"}});
}

TEST_CASE("no division by zero, no integer beyond 64 bits") {
  check({{"1 / 0", "?"}, {"1 // 0", "?"}, {"1 % 0", "?"}, {"1.5 / 0", "?"}, {"1 // 0.0", "?"}, {"1.5 % 0", "?"}});
  check({{"largest + 1", "?"}, {"least - 1", "?"}, {"largest * 2", "?"}, {"least * -1", "?"}, {"-least", "?"}});
  check({{"least // -1", "?"},
         {"least % -1", "0"},
         {"largest // -1", "-9223372036854775807"},
         {"least // 1 == least", "true"}});
  check({{"gcd(least, 0)", "?"},
         {"gcd(least, least)", "?"},
         {"gcd(least, 6)", "2"},
         {"least / -1", "9.223372036854776e+18"}});
  check({{"-9223372036854775808 == least", "true"},
         {"9223372036854775807 == largest", "true"},
         {"least // largest", "-2"}});
}

TEST_CASE("arithmetic takes numbers only") {
  for (const char* op : {"+", "-", "*", "/", "//", "%"}) {
    for (const char* other : {"true", "null", "'a'", "[1]", "unknown"}) {
      CAPTURE(op);
      CAPTURE(other);
      CHECK(result("1 " + std::string(op) + " " + other) == "?");
      CHECK(result(std::string(other) + " " + op + " 1.5") == "?");
    }
  }
  check({{"-true", "?"}, {"-'a'", "?"}, {"-null", "?"}, {"[1] + [2]", "?"}, {"'a' * 3", "?"}});
}
