// Messages about malformed files, each with its place.
#include "tests/config/support.hpp"

using namespace config_test;

TEST_CASE("a malformed file is refused with file, line and column") {
  CHECK(load_error("a: 1\nb: [1, 2\n").starts_with("a.yaml:"));
  CHECK(load_error("a:\n\tb: 1\n") == "a.yaml:2:1: a tab cannot stand here; use spaces, or quote the text");
  CHECK(load_error("a: \"x\n") == "a.yaml:1:4: the quotation does not end");
  CHECK(load_error("a: [, 1]\n") == "a.yaml:1:5: an element is missing before ','");
  CHECK(load_error("a: \x01\n") == "a.yaml:1:4: a control character");
  check_says(load_error("a: {x: 1}}\n"), "a.yaml:1:");
  check_says(load_error("a: *nope\n"), "a.yaml:1:");
  const std::string second = "what begins here is no part of the one YAML document that a file may hold";
  CHECK(load_error("a: 1\n---\nb: 2\n") == "a.yaml:2:1: " + second);
  CHECK(load_error(", a\n") == "a.yaml:1:1: " + second);  // which YAML::LoadAll reads for ever
  CHECK(load_error("- 1\n") == "a.yaml:1:1: the root must be a mapping, got a list of 1");
}

TEST_CASE("control characters stand nowhere, raw or within quotations and comments") {
  const std::string zero(1, '\0');
  CHECK(load_error("a: " + zero + "\n") == "a.yaml:1:4: a control character");
  CHECK(load_error("a: 1\nb: \"x" + zero + "y\"\n") == "a.yaml:2:6: a control character");
  CHECK(load_error("a: 1 # " + zero + "\n") == "a.yaml:1:8: a control character");
  CHECK(load_error("a: |\n  x" + zero + "\n") == "a.yaml:2:4: a control character");
  for (const char* control : {"\x01", "\x1b", "\x7f", "\xC2\x80", "\xC2\x9F", "\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    CHECK(load_error(std::string("a: '") + control + "'\n") == "a.yaml:1:5: a control character");
  CHECK(load_error("a: '\xff'\n") == "a.yaml:1:5: a byte that is not UTF-8");
  CHECK(load_text("\xEF\xBB\xBF"
                  "a: '\xC2\xA0\xEF\xBF\xBD\xF0\x9F\x98\x80'\n")
            .has("a"));                                     // printable
  CHECK(load_text("a: \"\\0\"\n").as_string("a") == zero);  // an escape is none
}

TEST_CASE("an anchor is given once") {
  CHECK(load_text("a: &x 1\nb: *x\nc: &y [*x]\n").as_int("b") == 1);
  CHECK(load_error("a: &x 1\nb: &x 2\n") == "a.yaml:2:4: anchor &x is given twice, first in line 1");
  check_says(load_error("a: &x {b: [&x 1]}\n"), "anchor &x is given twice, first in line 1");
}

TEST_CASE("tabs may stand in quotations, comments and block texts") {
  const auto node = load_text("a: \"x\ty\" #\tc\nb: |\n  if x:\n  \ty\nc: 'it''s'\nd: it's\n");
  CHECK(node.as_string("a") == "x\ty");
  CHECK(node.as_string("b") == "if x:\n\ty\n");
  CHECK(node.as_string("d") == "it's");
}

TEST_CASE("keys are text and unique") {
  CHECK(load_error("a: 1\nb: 2\na: 3\n") == "a.yaml:3:1: key a is written twice in one mapping");
  CHECK(load_error("x: {on: 1}\n") == "a.yaml:1:5: key 'on' is read as bool true; quote it if the text is meant");
  CHECK(load_error("3: x\n") == "a.yaml:1:1: key '3' is read as int 3; quote it if the text is meant");
  CHECK(load_error("null: x\n") == "a.yaml:1:1: key 'null' is read as null; quote it if the text is meant");
  CHECK(load_error("[a, b]: x\n") == "a.yaml:1:1: a key must be text");
}

TEST_CASE("scalars that cannot be represented are refused") {
  CHECK(load_error("a: 123456789012345678901234567890\n") ==
        "a.yaml:1:4: integer 123456789012345678901234567890 does not fit 64 bits; quote it if it is text");
  CHECK(load_error("a: =\n") == "a.yaml:1:4: '=' is a reserved word of YAML 1.1; quote it");
  check_says(load_error("a: !!int x\n"), "a.yaml:1:4: tag tag:yaml.org,2002:int cannot be applied to 'x'");
  check_says(load_error("a: !custom {b: 1}\n"), "a.yaml:1:4: tag !custom is not supported here");
  check_says(load_error("a: 1\nb: {<<: 5}\n"), "<< takes a mapping or a list of mappings, got int 5");
}

TEST_CASE("trees that never end are refused") {
  CHECK(load_error("a: &a [*a]\n") != "");
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{0}: &a{0} [", i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("{}*a{}", j ? ", " : "", i - 1);
    bomb += "]\n";
  }
  check_says(load_error(bomb), "more than 1000000 values");
  CHECK(load_error("a: " + std::string(5000, '[') + std::string(5000, ']') + "\n") != "");
}

TEST_CASE("a file that cannot be read is named") {
  const Files files("d/x.yaml", "");
  CHECK(message_of([&] { hexad::config::load(files / "gone.yaml"); }) == "gone.yaml: no such file");
  CHECK(message_of([&] { hexad::config::load(files / "d"); }) == "d: is a directory, wanted a YAML file");
}

TEST_CASE("a file without an end is refused") {
  CHECK(load_error("defaults: /dev/zero\n") == "/dev/zero: more than 8388608 bytes, which no configuration has");
}

TEST_CASE("a document that is text is read once more") {
  CHECK(load_text("\"a: 1\"\n").as_int("a") == 1);
  CHECK(load_text("some words\n").find("some words")->is_null());
  check_says(load_error("'a: [b'\n"), "a.yaml:1:");
}
