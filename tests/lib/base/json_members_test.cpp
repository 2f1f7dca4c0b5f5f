// Objects cut into members without a parser: every cut text means what the parser makes of the whole.
#include "lib/base/json_members.hpp"

#include <doctest/doctest.h>

#include <random>

#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "tests/plugin/plugin_folder.hpp"

using hexad::parse_bounded;
using hexad::json_members;
using hexad::JsonMembers;
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
  const JsonMembers members = json_members(R"( { "a" : 1 , "b.c":{"x": [1, "}"]},"":"q\"}," } )").value();
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
    const JsonMembers members = json_members(text).value();
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

TEST_CASE("text that is no JSON is refused with its line and column") {
  const auto error = [](std::string_view text) { return error_of([&] { parse_bounded(text, 16, "m"); }); };
  CHECK(error("{\"a\": 1,\n \"b\" 2}") ==
        "m: not JSON: line 2, column 6: Missing a colon after a name of object member.");
  CHECK(error("") == "m: not JSON: line 1, column 1: The document is empty.");
  CHECK(error("{\"a\":\n \"\xff\"}") == "m: not JSON: line 2, column 3: not UTF-8");
  CHECK(error(std::string_view("{}\0{}", 5)) == "m: not JSON: line 1, column 3: a NUL character");
  for (const char* text : {"[01]", "[1.]", "[+1]", "[.5]", "[NaN]", "[1e999]", "['a']", "[1,]", "{\"a\":1,}",
                           "[\"\\x\"]", "[\"\\ud800\"]", "[\"\t\"]", "[1] // why", "tru"}) {
    CAPTURE(text);
    CHECK(plugin_test::contains(error(text), "m: not JSON: line 1, column "));
  }
}

TEST_CASE("values of JSON are those of the text") {
  const auto value = [](std::string_view text) { return parse_bounded(text, 16, "m"); };
  CHECK(value("\xEF\xBB\xBF[true, false, null]") == Json({true, false, nullptr}));
  CHECK(value("[-9223372036854775808, 18446744073709551615]") == Json({INT64_MIN, UINT64_MAX}));
  CHECK(value("[0.1, 5e-324, -0.0, 1e22, 123456789012345678901234567890]") ==
        Json({0.1, 5e-324, -0.0, 1e22, 123456789012345678901234567890.0}));
  CHECK(value(R"(["\u00e9\ud83d\ude00\n\"\\\/", "\u0000"])") ==
        Json({"\u00e9\U0001F600\n\"\\/", std::string(1, '\0')}));
}
