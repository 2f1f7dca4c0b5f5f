#include "tests/lib/expression/expect.hpp"

using namespace hexad::expression;

namespace {

std::string repeated(const std::string& part, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += part;
  return all;
}

}  // namespace

TEST_CASE("where a value is missing, or something follows one") {
  CHECK(refusal("") == "column 1: got the end, wanted a value");
  CHECK(refusal("1 + ") == "column 5: got the end, wanted a value");
  CHECK(refusal("1 + * 2") == "column 5: got '*', wanted a value");
  CHECK(refusal("a == not b") == "column 6: got 'not', wanted a value");
  CHECK(refusal("a b") == "column 3: got 'b', wanted an operator or the end");
  CHECK(refusal("1 'it\"s\x01'") == R"(column 3: got the text "it\"s\x01", wanted an operator or the end)");
  CHECK(refusal("'größe' 1") == "column 9: got '1', wanted an operator or the end");
  CHECK(refusal("a not b") == "column 7: got 'b', wanted 'in'");
  CHECK(refusal("1 if a") == "column 7: got the end, wanted an operator or 'else'");
  CHECK(refusal("else 1") == "column 1: got 'else', wanted a value");
}

TEST_CASE("brackets") {
  CHECK(refusal("(1") == "column 3: got the end, wanted an operator or ')'");
  CHECK(refusal("(1]") == "column 3: got ']', wanted an operator or ')'");
  CHECK(refusal("1)") == "column 2: got ')', wanted an operator or the end");
  CHECK(refusal("[1 2]") == "column 4: got '2', wanted an operator, ',' or ']'");
  CHECK(refusal("[1,]") == "column 4: got ']', wanted a value");
  CHECK(refusal("()") == "column 2: got ')', wanted a value");
}

TEST_CASE("comparisons do not chain") {
  const std::string one = ", wanted one comparison; join two of them by 'and', as in a < b and b < c";
  CHECK(refusal("a < b < c") == "column 7: got '<'" + one);
  CHECK(refusal("a in b not in c") == "column 8: got 'not'" + one);
  CHECK(refusal("a < b == c") == "column 7: got '=='" + one);
}

TEST_CASE("calls") {
  CHECK(refusal("1 + abs(2)") == "column 5: no function 'abs'; known: gcd, has, known, len, max, min");
  CHECK(refusal("a.b(2)") == "column 1: no function 'a.b'; known: gcd, has, known, len, max, min");
  CHECK(refusal("gcd(1)") == "column 1: gcd got 1 argument, wanted 2");
  CHECK(refusal("gcd(1, 2, 3)") == "column 1: gcd got 3 arguments, wanted 2");
  CHECK(refusal("len()") == "column 1: len got 0 arguments, wanted 1");
  CHECK(refusal("min([1, 2])") == "column 1: min got 1 argument, wanted at least 2");
  CHECK(refusal("max(1, 2") == "column 9: got the end, wanted an operator, ',' or ')'");
  CHECK(refusal("has(1)") == "column 5: got '1', wanted a path, as in has(optimizer.name)");
  CHECK(refusal("has(a + b)") == "column 7: got '+', wanted ')'");
}

TEST_CASE("paths and words") {
  CHECK(refusal("if.x") == "column 1: got 'if.x', wanted a path that does not begin with 'if'");
  CHECK(refusal("a.") == "column 3: got the end, wanted a name or an index");
  CHECK(refusal("a. b") == "column 3: got ' ', wanted a name or an index");
  CHECK(refusal("a.0b") == "column 4: got 'b', wanted the number's end");
  CHECK(refusal("a.b.$") == "column 5: got '$', wanted a name or an index");
}

TEST_CASE("numbers") {
  CHECK(refusal("1.") == "column 3: got the end, wanted a digit");
  CHECK(refusal(".5") == "column 1: got '.', wanted a value or an operator");
  CHECK(refusal("1e") == "column 3: got the end, wanted a digit of the exponent");
  CHECK(refusal("1.5.2") == "column 4: got '.', wanted the number's end");
  CHECK(refusal("1and 2") == "column 2: got 'a', wanted the number's end");
  CHECK(refusal("9223372036854775808") == "column 1: 9223372036854775808 is out of the range of 64 bits");
  CHECK(refusal("1 + -9223372036854775809") == "column 6: -9223372036854775809 is out of the range of 64 bits");
  CHECK(refusal("1e999") == "column 1: 1e999 is out of the range of 64 bits");
}

TEST_CASE("texts") {
  CHECK(refusal("1 + 'abc") == "column 5: a text without end, wanted ' after it");
  CHECK(refusal("\"abc'") == "column 1: a text without end, wanted \" after it");
  CHECK(refusal(R"('a\qb')") == R"(column 4: got 'q' after a backslash, wanted \, ', ", n or t)");
  CHECK(refusal("'a\\") == R"(column 4: got the end after a backslash, wanted \, ', ", n or t)");
}

TEST_CASE("what other languages have") {
  CHECK(refusal("a = b") == "column 3: got '=', wanted '=='");
  CHECK(refusal("a && b") == "column 3: got '&', wanted 'and'");
  CHECK(refusal("a || b") == "column 3: got '|', wanted 'or'");
  CHECK(refusal("!a") == "column 1: got '!', wanted 'not' or '!='");
  CHECK(refusal("a ≤ b") == "column 3: got '≤', wanted a value or an operator");
  CHECK(refusal("a \xff b") == "column 3: got '\\xff', wanted a value or an operator");
  CHECK(refusal(std::string("a\0", 2)) == "column 2: got '\\x00', wanted a value or an operator");
}

TEST_CASE("limits") {
  CHECK(refusal("1" + repeated(" ", 1999)).empty());
  CHECK(refusal("'" + repeated("ö", 1998) + "'").empty());
  CHECK(refusal("1" + repeated(" ", 2000)) == "column 2001: got 2001 characters, wanted at most 2000");
  CHECK(result(repeated("(", 64) + "1" + repeated(")", 64)) == "1");
  CHECK(refusal(repeated("(", 65) + "1" + repeated(")", 65)) ==
        "column 65: got more than 64 levels, wanted at most 64");
  CHECK(refusal(repeated("[", 1999)) == "column 65: got more than 64 levels, wanted at most 64");
  CHECK(refusal(repeated("len(", 400)) == "column 260: got more than 64 levels, wanted at most 64");
  CHECK(result(repeated("1+", 249) + "1") == "250");  // 499 parts, and no nesting
  CHECK(refusal(repeated("1+", 250) + "1") == "column 502: got more than 500 values and operators, wanted at most 500");
  CHECK(result(repeated("not ", 498) + "true") == "true");
  CHECK(result(repeated("1 if false else ", 120) + "2") == "2");
  CHECK(refusal(repeated("-", 1999) + "a") ==
        "column 2001: got more than 500 values and operators, wanted at most 500");
}
