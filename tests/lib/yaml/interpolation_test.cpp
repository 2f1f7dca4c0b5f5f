// Messages about interpolations.
#include "tests/config/support.hpp"

using namespace config_test;

TEST_CASE("a malformed interpolation is found where it is written") {
  CHECK(load_error("x: 1\na: ${b\n") == "a.yaml:2:4: malformed interpolation '${b': wanted '}' at character 4");
  CHECK(load_error("a: ${}\n") == "a.yaml:1:4: malformed interpolation '${}': wanted a key at character 3");
  check_says(load_error("a: '${add:[1, 2}'\n"), "wanted ',' or ']' at character 12");
  check_says(load_error("a: \"${add:'x, 1}\"\n"), "the quotation does not end");
  check_says(load_error("a: '${.add:1,2}'\n"), "a resolver's name is words joined by dots");
  check_says(load_error("a: '${add:1,#}'\n"), "wanted a value");
  const std::string deep = [] {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "${";
    return text;
  }();
  check_says(load_error("a: '" + deep + "'\n"), "nested too deep");
}

TEST_CASE("what an interpolation refers to must be there") {
  CHECK(load_error("a: ${nope}\n") == "a.yaml:1:1: ${nope}: key nope does not exist");
  CHECK(load_error("a: {b: 1}\nc: ${a.b.d}\n") == "a.yaml:2:1: ${a.b.d}: in a.b.d the key d is below int 1");
  CHECK(load_error("l: [1]\nc: ${l.x}\n") ==
        "a.yaml:2:1: ${l.x}: in l.x the key x is below a list, which has numbers for keys");
  CHECK(load_error("a: ???\nb: ${a}\n") == "a.yaml:2:1: ${a}: it refers to a mandatory value that is not set");
  CHECK(load_error("a: ${..b}\n") == "a.yaml:1:1: ${..b}: too many dots: there is nothing above the root");
  CHECK(load_error("k: 3\na: ${${k}}\n") == "a.yaml:2:1: ${${k}}: a key must be text, got int 3");
}

TEST_CASE("interpolations do not go in circles") {
  CHECK(load_error("a: ${b}\nb: ${a}\n") == "a.yaml:1:1: ${b}: the interpolation refers to itself");
  check_says(load_error("a: {b: '${a}'}\n"), "the interpolation refers to itself");
  check_says(load_error("a: ${a.b}\n"), "the interpolation refers to itself");
}

TEST_CASE("interpolations that multiply are refused") {
  std::string lists = "a0: [1, 1]\n", texts = "a0: xxxxxxxxxx\n";
  for (int i = 1; i < 40; ++i) {
    lists += fmt::format("a{0}: ['${{a{1}}}', '${{a{1}}}']\n", i, i - 1);
    texts += fmt::format("a{0}: '${{a{1}}}${{a{1}}}'\n", i, i - 1);
  }
  check_says(load_error(lists), "interpolations come to more than 1000000 values");
  check_says(load_error(texts), "than 1");
}

TEST_CASE("resolvers say what they cannot take") {
  CHECK(load_error("a: '${ad:1,2}'\n") ==
        "a.yaml:1:1: ${ad:1,2}: unknown resolver 'ad', did you mean 'add'; there are add, mul, div, max, oc.env, "
        "oc.decode, oc.select");
  CHECK(load_error("a: '${add:1}'\n") == "a.yaml:1:1: ${add:1}: ${add:...} takes two arguments, got 1");
  CHECK(load_error("a: '${mul:1,x}'\n") == "a.yaml:1:1: ${mul:1,x}: ${mul:...} cannot take int 1 and text 'x'");
  CHECK(load_error("a: '${div:1,0}'\n") == "a.yaml:1:1: ${div:1,0}: ${div:1,0} divides by zero");
  const std::string half(600'000, 'x');
  check_says(load_error("h: " + half + "\na: ${add:${h},${h}}\n"),
             "${add:...} gives more than 1048576 characters or items");
  CHECK(load_error("a: '${mul:9223372036854775807,2}'\n") ==
        "a.yaml:1:1: ${mul:9223372036854775807,2}: ${mul:...} gives an integer beyond 64 bits");
  CHECK(load_error("a: '${oc.env:HEXAD_TEST_NOT_SET}'\n") ==
        "a.yaml:1:1: ${oc.env:HEXAD_TEST_NOT_SET}: environment variable HEXAD_TEST_NOT_SET is not set; set it or write "
        "${oc.env:HEXAD_TEST_NOT_SET,default}");
  check_says(load_error("a: '${oc.env:}'\n"), "takes a name, and a default if wanted");
  check_says(load_error("a: '${oc.decode:5}'\n"), "oc.decode takes text, got int 5");
}

TEST_CASE("lists and maps within text are written as Python writes them") {
  const auto node = load_text("l: [1, \"it's\", {k: null}]\na: 'x ${l}'\n");
  CHECK(node.as_string("a") == "x [1, \"it's\", {'k': None}]");
}
