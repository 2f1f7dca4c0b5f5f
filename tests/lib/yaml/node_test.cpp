// Values, paths, typed access and its messages, YAML and JSON output.
#include "lib/yaml/node.hpp"

#include "lib/yaml/file.hpp"
#include "tests/config/support.hpp"

using namespace config_test;
using hexad::yaml::Node;
using hexad::yaml::python_float;
using hexad::yaml::read_text;

TEST_CASE("paths go through maps and lists") {
  const Node node = load_text("a: {b: [1, {c: x}]}\n");
  CHECK(node.as_int("a.b.0") == 1);
  CHECK(node.as_string("a.b.1.c") == "x");
  CHECK(node.find("a.b.2") == nullptr);
  CHECK(node.find("a.x.y") == nullptr);
  CHECK(node.find("a.b.c") == nullptr);
  CHECK(node.find("") == &node);
  CHECK_FALSE(node.has("a.z"));
}

TEST_CASE("set makes the maps on the way") {
  Node node;
  node.set("a.b.c", Node(int64_t{3}));
  node.set("a.b.d", Node(std::string("x")));
  CHECK(node.to_json().dump() == R"({"a":{"b":{"c":3,"d":"x"}}})");
}

TEST_CASE("typed access converts where nothing is lost") {
  const Node node = load_text("i: 3\nf: 2.0\nh: 2.5\nl: [1, 2]\nt: [a, b]\nn: null\n");
  CHECK(node.as_double("i") == 3.0);
  CHECK(node.as_int("f") == 2);
  CHECK(node.as_ints("l") == std::vector<int64_t>{1, 2});
  CHECK(node.as_doubles("l") == std::vector<double>{1, 2});
  CHECK(node.as_strings("t") == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(node.optional_int("n").has_value());
  CHECK_FALSE(node.optional_double("absent").has_value());
  CHECK(node.optional_int("i") == 3);
  CHECK_FALSE(node.optional_bool("n").has_value());
  CHECK_FALSE(node.optional_string("n").has_value());
}

TEST_CASE("a wrong type names place, key, got and wanted") {
  const Files files("a.yaml", "x:\n  n: abc\n  h: 2.5\n  l: [1, b]\n  m: {}\n");
  const Node node = hexad::config::load(files / "a.yaml");
  CHECK(message_of([&] { node.as_int("x.n"); }) == "a.yaml:2:3: x.n: got text 'abc', wanted an integer");
  CHECK(message_of([&] { node.as_int("x.h"); }) == "a.yaml:3:3: x.h: got float 2.5, wanted an integer");
  CHECK(message_of([&] { node.as_double("x.n"); }) == "a.yaml:2:3: x.n: got text 'abc', wanted a number");
  CHECK(message_of([&] { node.as_bool("x.h"); }) == "a.yaml:3:3: x.h: got float 2.5, wanted true or false");
  CHECK(message_of([&] { node.as_string("x.m"); }) == "a.yaml:5:3: x.m: got a mapping, wanted text");
  CHECK(message_of([&] { node.as_ints("x.l"); }) == "a.yaml:4:10: x.l.1: got text 'b', wanted an integer");
  CHECK(message_of([&] { node.as_strings("x.n"); }) == "a.yaml:2:3: x.n: got text 'abc', wanted a list of texts");
  CHECK(message_of([&] { node.as_int("x.gone"); }) == "a.yaml:1:1: key x.gone is missing");
}

TEST_CASE("floats are written as Python writes them") {
  CHECK(python_float(1e-8) == "1e-08");
  CHECK(python_float(0.0001) == "0.0001");
  CHECK(python_float(123456.75) == "123456.75");
  CHECK(python_float(1e15) == "1000000000000000.0");
  CHECK(python_float(1e16) == "1e+16");
  CHECK(python_float(-0.5) == "-0.5");
  CHECK(python_float(3) == "3.0");
  CHECK(python_float(1.5e300) == "1.5e+300");
}

TEST_CASE("YAML output reads back as the same values") {
  const std::string text =
      "a: {b: [1, 2.5, 1e-8, true, null, '12', 'yes', '', ' x ', 'a: b', '# c', \"l1\\nl2\\t\\\"q\\\" \\\\\"]}\n"
      "e: {}\nf: []\nnested: [[1, [2]], {k: [{v: 1}]}]\ninf: [.inf, -.inf]\nwords: ['12345678901234567890', '~', "
      "'null', '-', '1:30', '<<', "
      "'=']\n"
      "'key with: colon': 'größe'\nescaped: \\${a}\ntemplate: \"{% for m in messages %}\\n{{ m }}\\n{% endfor %}\"\n";
  const Node node = load_text(text);
  const Node again = load_text(node.to_yaml());
  CHECK(hexad::yaml::same_value(node, again));
  CHECK(again.as_string("escaped") == "${a}");
}

TEST_CASE("same_value tells 1 from 1.0 and takes nan for nan") {
  using hexad::yaml::same_value;
  CHECK_FALSE(same_value(Node(int64_t{1}), Node(1.0)));
  CHECK(same_value(Node(std::nan("")), Node(std::nan(""))));
  CHECK_FALSE(same_value(hexad::yaml::read_text("{a: 1}", "x"), hexad::yaml::read_text("{b: 1}", "x")));
}
