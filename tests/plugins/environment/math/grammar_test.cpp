#include "plugins/environment/math/latex/grammar.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "plugins/environment/math/latex/latex.hpp"
#include "plugins/environment/math/latex/parse_tree.hpp"
#include "plugins/environment/math/number/arithmetic.hpp"

using namespace hexad::math;

namespace {

// The rules on the way from the root as long as there is one child, and how many there are then.
std::string spine(const std::string& latex) {
  const auto read = lexemes(latex);
  REQUIRE(read);
  const auto tree = parse_tree(*read);
  if (!tree) return "none";
  const ParseNode* node = &tree->children[0];
  while (node->children.size() == 1 && !node->children[0].rule.empty()) node = &node->children[0];
  return std::string(node->rule) + " " + std::to_string(node->children.size());
}

}  // namespace

TEST_CASE("the longest token counts") {
  const auto read = lexemes("\\leq \\le\\pi x dx 1.5E-3 50\\% \\text{a b}");
  REQUIRE(read);
  std::vector<Token> tokens;
  for (const Lexeme& lexeme : *read) tokens.push_back(lexeme.token);
  CHECK(tokens == std::vector<Token>{Token::lte, Token::lte, Token::greek, Token::letter, Token::differential,
                                     Token::scientific, Token::percent_number, Token::accent, Token::end});
  CHECK_FALSE(lexemes("5 # 6"));
}

TEST_CASE("of several trees the first choice is taken") {
  CHECK(spine("1+2") == "expr 3");
  CHECK(spine("f(x)") == "call_named 4");  // a call before a product
  CHECK(spine("(1,2)") == "interval 5");   // an interval before a pair
  CHECK(spine("(1,2,3)") == "ordered_tuple 3");
  CHECK(spine("x=1,2") == "membership 3");  // one assignment before a list of relations
  CHECK(spine("x=1,y=2") == "commas 3");
  CHECK(spine("1+") == "none");
}

TEST_CASE("a grammar names only what there is") {
  CHECK_THROWS_WITH_AS(read_grammar("start: add nothing"), doctest::Contains("no rule or token 'nothing'"),
                       std::logic_error);
  const Grammar read = read_grammar("start: add? ( sub / mul )+ end");
  CHECK(read.rules[0].name == "start");
  CHECK(read.rules[0].alternatives[0].size() == 3);
}

TEST_CASE("too many tokens are not read") {
  std::string long_sum = "1";
  for (size_t i = 0; i < kMostLexemes; ++i) long_sum += "+1";
  const auto read = lexemes(long_sum);
  REQUIRE(read);
  CHECK_FALSE(parse_tree(*read));
  CHECK_FALSE(read_latex(long_sum));
}

TEST_CASE("numbers") {
  CHECK(read_number("0012")->value == 12);
  CHECK(read_number("-1.50")->value == Rational(-3) / 2);
  CHECK(read_number("2E3")->is(Kind::decimal));
  CHECK(read_number("12")->is_integer());
  for (const char* text : {"", ".", "1.2.3", "1e", "--1", "1E99999", "x"}) CHECK_FALSE(read_number(text));
  CHECK_FALSE(read_number(std::string(5000, '9')));
}
