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

TEST_CASE("reals, texts and numbers beyond the type are refused") {
  CHECK(refusal<int64_t>("4555555555555555555555") == "got 4.5555555555555557e+21, wanted a whole number of 64 bits");
  CHECK(refusal<int64_t>("2.5") == "got 2.5, wanted a whole number of 64 bits");
  CHECK(refusal<int64_t>("18446744073709551615") == "got 18446744073709551615, wanted a whole number of 64 bits");
  CHECK(refusal<uint8_t>("256") == "got 256, wanted a whole number of 8 bits");
  CHECK(refusal<uint64_t>("-1") == "got -1, wanted a whole number of 64 bits");
  CHECK(refusal<int>("\"7\"") == "got \"7\", wanted a whole number of 32 bits");
  CHECK_THROWS_WITH_AS(integers<int>(Json::parse("{}")), "got object, wanted a list of whole numbers", Error);
}
