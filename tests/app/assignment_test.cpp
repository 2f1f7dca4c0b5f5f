// KEY=VALUE of the conformance kit's command line and of manifests.
#include "app/verify/verify.hpp"

#include <doctest/doctest.h>

using hexad::plugin::assign;
using Json = nlohmann::ordered_json;

TEST_CASE("an assignment sets the key that its path names, to JSON or a text") {
  Json config = Json::object();
  CHECK(assign(config, "a.b=2"));
  CHECK(assign(config, "a.c=[\"x\"]"));
  CHECK(assign(config, "name=some text"));
  CHECK(config == Json::parse(R"({"a": {"b": 2, "c": ["x"]}, "name": "some text"})"));
}

TEST_CASE("an assignment that names no key is refused, and changes nothing") {
  Json config = {{"a", 1}};
  for (const char* wrong : {"a", "=1", "a.b=2", "a~b=1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(assign(config, wrong));
  }
  CHECK(config == Json{{"a", 1}});
}
