// Objects cut into members without a parser: every cut text means what the parser makes of the whole.
#include "core/manifest/members.hpp"

#include <doctest/doctest.h>

#include <random>

#include <nlohmann/json.hpp>

#include "core/manifest/bounded_json.hpp"
#include "tests/plugin/plugin_folder.hpp"

using hexad::plugin::json_members;
using hexad::plugin::Members;
using hexad::plugin::parse_bounded;
using plugin_test::error_of;
using plugin_test::Json;

namespace {

// Values of every kind, with brackets, quotes, commas and backslashes in texts.
Json random_value(std::mt19937& random, int depth) {
  static const char* const texts[] = {"", "a", "\"", "\\", "{[", "]}", ",:", "\\\"", "é\n\t", "\u0001"};
  switch (random() % (depth > 3 ? 5 : 7)) {
    case 0: return nullptr;
    case 1: return random() % 2 == 0;
    case 2: return static_cast<int64_t>(random()) - (1 << 30);
    case 3: return static_cast<double>(random()) / 7;
    case 4: return texts[random() % std::size(texts)];
    case 5: {
      Json list = Json::array();
      for (size_t i = random() % 4; i > 0; --i) list.push_back(random_value(random, depth + 1));
      return list;
    }
    default: {
      Json object = Json::object();
      for (size_t i = random() % 4; i > 0; --i) object["k" + std::to_string(i)] = random_value(random, depth + 1);
      return object;
    }
  }
}

bool is_cut(const std::string& text) { return json_members(text).has_value(); }

}  // namespace

TEST_CASE("an object is cut into its members, whose texts are as they stand") {
  const Members members = json_members(R"( { "a" : 1 , "b.c":{"x": [1, "}"]},"":"q\"}," } )").value();
  REQUIRE(members.size() == 3);
  CHECK(members[0].first == "a");
  CHECK(members[0].second == "1 ");
  CHECK(members[1].first == "b.c");
  CHECK(members[1].second == R"({"x": [1, "}"]})");
  CHECK(members[2].first == "");
  CHECK(members[2].second == R"("q\"}," )");
  CHECK(json_members("{}")->empty());
  CHECK(json_members(R"({"a": 1, "a": 2})")->size() == 2);
}

TEST_CASE("what only a parser can judge is not cut") {
  for (const char* text : {"", "1", "[]", "{", "}", "{\"a\"}", "{\"a\":}", "{\"a\": 1", "{\"a\": 1}}", "{\"a\": \"b}",
                           "{a: 1}", "{\"a\": [1}", "{\"a\": 1,}", "{\"a\\u0062\": 1}", "{\"a\": 1} x", "{\"a\\"}) {
    CAPTURE(text);
    // A value's brackets are counted, and not matched: its own parser does that.
    if (is_cut(text)) CHECK(error_of([&] { parse_bounded(text, 16, "m"); }) != "(no error)");
  }
  CHECK_FALSE(is_cut("{\"a\": 1"));
  CHECK_FALSE(is_cut("{\"a\": \"b}"));
  CHECK_FALSE(is_cut("{\"a\\u0062\": 1}"));
  CHECK_FALSE(is_cut("{\"a\": 1} x"));
}

TEST_CASE("members of any object are those that the parser finds") {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    Json object = Json::object();
    for (size_t n = random() % 6; n > 0; --n) object["m" + std::to_string(n)] = random_value(random, 0);
    const std::string text = object.dump(random() % 2 == 0 ? -1 : 2);
    CHECK(parse_bounded(text, 16, "m") == object);
    const Members members = json_members(text).value();
    REQUIRE(members.size() == object.size());
    size_t at = 0;
    for (const auto& [name, value] : object.items()) {
      CHECK(members[at].first == name);
      CHECK(Json::parse(members[at++].second) == value);
    }
  }
}

TEST_CASE("a key that stands twice is refused at every level, and so are too many levels") {
  CHECK(error_of([] { parse_bounded(R"({"a": [{"b": {"c": 1, "d": 2, "c": 1}}]})", 16, "m"); }) ==
        "m: key 'c' stands twice in one object");
  CHECK(parse_bounded("[[[1]]]", 3, "m").dump() == "[[[1]]]");
  CHECK(error_of([] { parse_bounded("[[[1]]]", 2, "m"); }) == "m: nested deeper than 2 levels");
  CHECK(plugin_test::contains(error_of([] { parse_bounded(R"({"a": 1} x)", 2, "m"); }), "m: not JSON"));
}
