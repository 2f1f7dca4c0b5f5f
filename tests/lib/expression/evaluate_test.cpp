#include "tests/lib/expression/expect.hpp"

using namespace hexad::expression;

TEST_CASE("literals and paths") {
  check({{"12", "12"}, {"007", "7"}, {"0.25", "0.25"}, {"2.0", "2.0"}, {"1e-8", "1e-08"}, {"2E+3", "2000.0"}});
  check({{"true", "true"}, {"false", "false"}, {"null", "null"}, {"(3)", "3"}, {"[]", "[]"}});
  check({{"[1, 'b', [true, null], 0.5]", "[1, b, [true, null], 0.5]"}, {" \t\n\r1\n", "1"}});
  check({{R"('a\\b\'c\"d\n\t')", "'a\\b'c\"d\n\t'"}, {R"("it's")", "'it's'"}, {"'größe'", "'größe'"}, {"''", "''"}});
  check({{"tp", "4"},
         {"betas.0", "0.9"},
         {"absent", "null"},
         {"run.in", "7"},
         {"unknown.x", "?"},
         {"betas", "[0.9, 1]"}});
  check({{"min", "null"}, {"has", "null"}, {"iffy", "null"}});  // functions are no reserved words
}

TEST_CASE("comparisons") {
  check(
      {{"1 == 1", "true"}, {"1 == 1.0", "true"}, {"1 == 2", "false"}, {"1 != 1.0", "false"}, {"null == null", "true"}});
  check({{"'a' == \"a\"", "true"},
         {"1 == true", "false"},
         {"0 == null", "false"},
         {"'1' != 1", "true"},
         {"nan == nan", "false"}});
  check({{"[1, 2.0] == [1.0, 2]", "true"},
         {"[1] == [1, 2]", "false"},
         {"[[1]] == [1]", "false"},
         {"absent == null", "true"}});
  check({{"1 < 2", "true"},
         {"2 < 1", "false"},
         {"1 <= 1.0", "true"},
         {"1 > 0.5", "true"},
         {"1.5 >= 2", "false"},
         {"1 < 1", "false"}});
  check({{"'a' < 'b'", "true"},
         {"'b' <= 'a'", "false"},
         {"'a' < 'ab'", "true"},
         {"'Z' < 'a'", "true"},
         {"'é' > 'z'", "true"}});
  check({{"1 < 'a'", "?"},
         {"true < false", "?"},
         {"null < 1", "?"},
         {"[1] < [2]", "?"},
         {"nan < 1", "?"},
         {"1 >= unknown", "?"}});
  check({{"unknown == unknown", "?"}, {"unknown != 1", "?"}, {"1 == unknown", "?"}});
}

TEST_CASE("integers and numbers are compared without rounding") {
  check({{"9007199254740993 == 9007199254740992.0", "false"}, {"9007199254740993 > 9007199254740992.0", "true"}});
  check({{"9007199254740992.0 < 9007199254740993", "true"}, {"largest == 9223372036854775808.0", "false"}});
  check({{"largest < 9223372036854775808.0", "true"},
         {"least == -9223372036854775808.0", "true"},
         {"least > -1e300", "true"}});
  check({{"-1 > -1.5", "true"},
         {"-2 < -1.5", "true"},
         {"0 == -0.0", "true"},
         {"1e300 > largest", "true"},
         {"1 > nan", "?"}});
}

TEST_CASE("in and not in look into lists") {
  check({{"1 in [1, 2]", "true"},
         {"3 in [1, 2]", "false"},
         {"1.0 in [1]", "true"},
         {"1 in []", "false"},
         {"[1] in [[1]]", "true"}});
  check({{"3 not in [1, 2]", "true"},
         {"1 not in [1]", "false"},
         {"name in ['adam', 'sgd']", "true"},
         {"null in [null]", "true"}});
  check({{"'a' in 'abc'", "?"},
         {"1 in 1", "?"},
         {"1 in null", "?"},
         {"unknown in [1]", "?"},
         {"1 in [1, unknown]", "?"}});
}

TEST_CASE("functions") {
  check({{"has(tp)", "true"},
         {"has(absent)", "false"},
         {"has(unknown)", "?"},
         {"has( betas.0 )", "true"},
         {"not has(absent)", "true"}});
  check({{"min(3, 1, 2)", "1"},
         {"max(3, 1, 2)", "3"},
         {"min(1, 0.5)", "0.5"},
         {"max(1, 1.0)", "1"},
         {"max(1.0, 1)", "1.0"}});
  check({{"min('b', 'a')", "'a'"},
         {"min(1, 'a')", "?"},
         {"max(1, unknown)", "?"},
         {"min(null, null)", "?"},
         {"max(nan, 1)", "?"}});
  check({{"len('')", "0"},
         {"len('größe')", "5"},
         {"len([1, [2, 3]])", "2"},
         {"len(1)", "?"},
         {"len(unknown)", "?"},
         {"len(null)", "?"}});
}

TEST_CASE("precedence and grouping") {
  check({{"2 + 3 * 4", "14"},
         {"(2 + 3) * 4", "20"},
         {"10 - 2 - 3", "5"},
         {"100 // 7 // 2", "7"},
         {"100 // 7 * 2", "28"}});
  check({{"2 * 7 % 4", "2"},
         {"8 / 2 * 4", "16.0"},
         {"-7 // 2 + 1", "-3"},
         {"-(7 // 2)", "-3"},
         {"2 - -3", "5"},
         {"2 * -3", "-6"}});
  check({{"1 + 1 == 2", "true"},
         {"5 % 3 in [1 + 1]", "true"},
         {"not 1 == 2", "true"},
         {"not not yes", "true"},
         {"not 1 in [1]", "false"}});
  check({{"true or false and false", "true"}, {"(true or false) and false", "false"}, {"not true or true", "true"}});
  check({{"not false and false", "false"}, {"1 < 2 and 2 < 1 or yes", "true"}, {"(1 < 2) == (2 < 3)", "true"}});
  check({{"1 if true else 2 if true else 3", "1"},
         {"1 if false else 2 if true else 3", "2"},
         {"1 if false else 2 if false else 3", "3"}});
  check({{"(1 if true else 2) + 1", "2"}, {"1 if true else 2 + 1", "1"}, {"[1 if false else 2, 3]", "[2, 3]"}});
  check({{"1 if true or true else 2", "1"}, {"true or true if false else 2", "2"}, {"max(1, 2 if yes else 3)", "2"}});
}

TEST_CASE("Kleene's logic") {
  const std::map<char, std::string> word = {{'T', "true"}, {'F', "false"}, {'u', "unknown"}, {'n', "null"}, {'1', "1"}};
  const auto row = [&](const std::string& op, const std::string& rows) {  // "TF=F": true OP false is false
    for (size_t i = 0; i < rows.size(); i += 5) {
      const std::string text = word.at(rows[i]) + op + word.at(rows[i + 1]);
      CAPTURE(text);
      CHECK(result(text) == (rows[i + 3] == 'u' ? "?" : word.at(rows[i + 3])));
    }
  };
  row(" and ", "TT=T TF=F Tu=u FT=F FF=F Fu=F uT=u uF=F uu=u nF=F Tn=u 1F=F 1T=u nn=u");
  row(" or ", "TT=T TF=T Tu=T FT=T FF=F Fu=u uT=T uF=u uu=u nT=T Fn=u 1T=T 1F=u nn=u");
  check({{"not true", "false"}, {"not false", "true"}, {"not unknown", "?"}, {"not null", "?"}, {"not 0", "?"}});
  check({{"1 if unknown else 1", "?"},
         {"1 if null else 2", "?"},
         {"unknown if false else 2", "2"},
         {"unknown if true else 2", "?"}});
  check({{"1 if true else unknown", "1"},
         {"tp == 0 or 8 % tp == 0", "true"},
         {"absent == null or 8 % absent == 0", "true"}});
}

TEST_CASE("what an expression holds and reads") {
  CHECK(Expression::parse("tp > 2").holds(sample) == true);
  CHECK(Expression::parse("tp > 4").holds(sample) == false);
  CHECK(!Expression::parse("unknown").holds(sample));
  CHECK(!Expression::parse("tp").holds(sample));
  const Expression expression = Expression::parse("b.x.0 + a if has(c.d) else b.x.0 * max(a, 1)");
  CHECK(expression.paths() == std::vector<std::string>{"b.x.0", "a", "c.d"});
  CHECK(expression.text() == "b.x.0 + a if has(c.d) else b.x.0 * max(a, 1)");
  const Expression copy = expression;
  CHECK(&copy.text() == &expression.text());
}

TEST_CASE("values") {
  CHECK(Value().is_null());
  CHECK(Value(1) == Value(1.0));
  CHECK(Value(true) != Value(1));
  CHECK(Value("a") == Value(std::string("a")));
  CHECK(order(Value(1), Value(1.5)) == std::partial_ordering::less);
  CHECK(order(Value(1), Value("a")) == std::partial_ordering::unordered);
  CHECK(Value(Value::List{Value(1), Value(0.5), Value("x"), Value(false), Value()}).text() ==
        "[1, 0.5, x, false, null]");
  CHECK(Value(Value::List{Value(""), Value("")}).text() == "[, ]");
}
