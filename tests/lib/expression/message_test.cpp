#include "tests/lib/expression/expect.hpp"

using namespace hexad::expression;

namespace {

std::string formatted(std::string_view text) { return Message::parse(text).format(sample); }

}  // namespace

TEST_CASE("a message has its expressions' values as a person writes them") {
  CHECK(formatted("{tp} does not divide the {tp * 2 + 1} ranks") == "4 does not divide the 9 ranks");
  CHECK(formatted("") == "");
  CHECK(formatted("no braces") == "no braces");
  CHECK(formatted("{name}{ lr }{betas} {absent} {yes}") == "adam0.5[0.9, 1] null true");
  CHECK(formatted("{unknown.x} of {1 // 0}") == "? of ?");
}

TEST_CASE("braces of the text are written twice, those in quotes are of the expression") {
  CHECK(formatted("{{tp}} {{{tp}}} }}{{") == "{tp} {4} }{");
  CHECK(formatted(R"({'}' if yes else "{"}{'\'}'})") == "}'}");
}

TEST_CASE("a message tells the paths of all its expressions, each once") {
  CHECK(Message::parse("{b} {a + b} {has(c)} {{d}}").paths() == std::vector<std::string>{"b", "a", "c"});
}

TEST_CASE("errors in a message have the column in the whole of it") {
  CHECK(refusal<Message>("größe {a +}") == "column 11: got the end, wanted a value");
  CHECK(refusal<Message>("{}") == "column 2: got the end, wanted a value");
  CHECK(refusal<Message>("a {b} {c d}") == "column 10: got 'd', wanted an operator or the end");
  CHECK(refusal<Message>("ab {c") == "column 4: got '{' without its '}', wanted {expression}, or '{{' for a brace");
  CHECK(refusal<Message>("{'a}") == "column 1: got '{' without its '}', wanted {expression}, or '{{' for a brace");
  CHECK(refusal<Message>("ab }") == "column 4: got '}', wanted '}}', which stands for a brace, or a '{' before it");
}
