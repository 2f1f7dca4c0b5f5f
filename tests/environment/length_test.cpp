#include "core/environment/length.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::environment;
using Json = nlohmann::ordered_json;

namespace {

Sample of_length(int64_t tokens) {
  Sample sample;
  sample.response_tokens = tokens;
  return sample;
}

float linear(const Json& arguments, int64_t tokens) {
  const Sample sample = of_length(tokens);
  return make_length(arguments)->score(std::span(&sample, 1), 1).rewards[0];
}

}  // namespace

TEST_CASE("length: straight between two numbers of tokens, and level beyond them") {
  const Json shorter = {{"full_at", 100}, {"none_at", 300}};
  CHECK(linear(shorter, 0) == 1);
  CHECK(linear(shorter, 100) == 1);
  CHECK(linear(shorter, 150) == 0.75f);
  CHECK(linear(shorter, 300) == 0);
  CHECK(linear(shorter, 9000) == 0);
  const Json longer = {{"schedule", "linear"}, {"full_at", 300}, {"none_at", 100}};
  CHECK(linear(longer, 50) == 0);
  CHECK(linear(longer, 250) == 0.75f);
  CHECK(linear(longer, 400) == 1);
}

TEST_CASE("length: the cosine reward, at its ends, in the middle and beyond") {
  const CosineLength defaults(Json{{"of", "math"}});
  CHECK(defaults.of() == "math");
  CHECK(defaults.reward(of_length(0), true) == 1.0f);
  CHECK(defaults.reward(of_length(500), true) == doctest::Approx(0.75));
  CHECK(defaults.reward(of_length(250), true) == doctest::Approx(0.5 + 0.5 * (1 + std::sqrt(0.5)) / 2));
  CHECK(defaults.reward(of_length(1000), true) == doctest::Approx(0.5));
  CHECK(defaults.reward(of_length(1500), true) == doctest::Approx(0.5));  // it does not come back
  CHECK(defaults.reward(of_length(0), false) == -1.0f);
  CHECK(defaults.reward(of_length(500), false) == doctest::Approx(-0.75));
  CHECK(defaults.reward(of_length(1000), false) == doctest::Approx(-0.5));
  const CosineLength own(Json{{"max_tokens", 10},
                              {"min_value_wrong", -10},
                              {"max_value_wrong", 0},
                              {"min_value_correct", 2},
                              {"max_value_correct", 1}});  // longer ones favoured
  CHECK(own.reward(of_length(0), true) == 1);
  CHECK(own.reward(of_length(10), true) == 2);
  CHECK(own.reward(of_length(0), false) == -10);
}

TEST_CASE("length: wrong arguments are refused") {
  const auto refuses = [](const Json& arguments, const char* says) {
    CHECK_THROWS_WITH_AS(make_length(arguments), doctest::Contains(says), Error);
  };
  refuses(Json::object(), "env.length: want two different numbers of tokens, full_at (reward 1) and none_at (0)");
  refuses({{"full_at", 5}, {"none_at", 5}}, "want two different numbers of tokens");
  refuses({{"schedule", "cosine"}}, "cosine asks whether a response is right: make it a part of env.<name>.rewards");
  refuses({{"full_at", -1}, {"none_at", 5}}, "env.length.full_at: want a whole number of at least 0, got -1");
}
