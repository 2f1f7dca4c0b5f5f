#include "lib/base/json_integer.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace hexad;
using Json = nlohmann::json;

namespace {

template <typename T>
std::string refusal(const char* text) {
  try {
    integer<T>(Json::parse(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a whole number of JSON is taken where the type holds it") {
  CHECK(integer<int64_t>(Json::parse("-9223372036854775808")) == std::numeric_limits<int64_t>::min());
  CHECK(integer<uint64_t>(Json::parse("18446744073709551615")) == std::numeric_limits<uint64_t>::max());
  CHECK(integer<uint8_t>(Json::parse("255")) == 255);
  CHECK(integers<int32_t>(Json::parse("[1, -2]")) == std::vector<int32_t>{1, -2});
}

TEST_CASE("a count of an object is a whole number, 0 or more, and named where it is not") {
  const Json object = Json::parse(R"({"a": 7, "b": -1, "c": 1.5, "d": "2", "e": 18446744073709551615, "f": 1e30})");
  CHECK(count_of(object, "a") == 7);
  CHECK(count_of<uint64_t>(object, "e") == std::numeric_limits<uint64_t>::max());
  for (const char* key : {"b", "c", "d", "e", "f"})
    CHECK_THROWS_WITH_AS(
        count_of(object, key),
        fmt::format("{} is {}, wanted a whole number, 0 or more", key, json_text(object.at(key))).c_str(), Error);
  CHECK_THROWS_WITH_AS(count_of(object, "g"), "g is missing, wanted a whole number, 0 or more", Error);
  CHECK_THROWS_WITH_AS(count_of(Json(5), "a"), "a is missing, wanted a whole number, 0 or more", Error);
}

TEST_CASE("reals, texts and numbers beyond the type are refused") {
  CHECK(refusal<int64_t>("4555555555555555555555") == "got 4.5555555555555557e+21, wanted a whole number of 64 bits");
  CHECK(refusal<int64_t>("2.5") == "got 2.5, wanted a whole number of 64 bits");
  CHECK(refusal<int64_t>("18446744073709551615") == "got 18446744073709551615, wanted a whole number of 64 bits");
  CHECK(refusal<uint8_t>("256") == "got 256, wanted a whole number of 8 bits");
  CHECK(refusal<uint64_t>("-1") == "got -1, wanted a whole number of 64 bits");
  CHECK(refusal<int>("\"7\"") == "got \"7\", wanted a whole number of 32 bits");
  CHECK_THROWS_WITH_AS(integers<int>(Json::parse("{}")), "got object, wanted a list of whole numbers", Error);
}
