// Inheritance: messages, and rules that the golden cases do not single out.
#include "tests/config/support.hpp"

using namespace config_test;
using hexad::config::load;

TEST_CASE("locations follow the file that a value comes from") {
  const Files files({{"c.yaml", "defaults: sub/p.yaml\na: {x: 5}\n"}, {"sub/p.yaml", "a:\n  x: 1\n  y: 2\n"}});
  const auto root = load(files / "c.yaml", {"++a.z.q=1"});
  CHECK(root.at("a.x").location().text() == (files / "c.yaml").string() + ":2:5");
  CHECK(root.at("a.y").location().text() == (files / "sub/p.yaml").string() + ":3:3");
  CHECK(root.at("a.z.q").location().text() == "override '++a.z.q=1'");
}

TEST_CASE("a file that inherits from itself is refused") {
  const Files files(
      {{"a.yaml", "defaults: b.yaml\n"}, {"b.yaml", "defaults: [c.yaml]\n"}, {"c.yaml", "defaults: a.yaml\n"}});
  check_says(message_of([&] { load(files / "a.yaml"); }), "the file inherits from itself through `defaults`");
}

TEST_CASE("inheritance that multiplies is refused") {
  std::vector<std::pair<std::string, std::string>> chain;
  for (int i = 0; i < 30; ++i)
    chain.emplace_back(fmt::format("{}.yaml", i), fmt::format("defaults: [{0}.yaml, {0}.yaml]\n", i + 1));
  chain.emplace_back("30.yaml", "a: 1\n");
  const Files files(chain);
  check_says(message_of([&] { load(files / "0.yaml"); }), "`defaults` come to more than 1000 files");
}

TEST_CASE("defaults that are no file names are refused") {
  CHECK(load_error("defaults: null\n") == "a.yaml:1:1: defaults: got null, wanted a file name or a list of them");
  CHECK(load_error("defaults: {x: 1}\n") ==
        "a.yaml:1:1: defaults: got a mapping, wanted a file name or a list of them");
  check_says(load_error("defaults: nope.yaml\n"), "nope.yaml: no such file");
  check_says(load_error("defaults: " + std::string(300, 'x') + "/a.yaml\n"), "xxx/a.yaml: File name too long");
}

TEST_CASE("maps and lists do not merge") {
  const Files files({{"c.yaml", "defaults: p.yaml\na: {b: [1]}\n"}, {"p.yaml", "a: {b: {x: 1}}\n"}});
  CHECK(message_of([&] { load(files / "c.yaml"); }) == "c.yaml:2:5: a.b: cannot merge a list of 1 with a mapping");
}

TEST_CASE("a top-level reference to a value that is not set is refused") {
  const Files files({{"c.yaml", "defaults: p.yaml\n"}, {"p.yaml", "a: ???\nb: ${a}\n"}});
  CHECK(message_of([&] { load(files / "c.yaml"); }) == "p.yaml:2:1: b: it refers to a mandatory value that is not set");
}
