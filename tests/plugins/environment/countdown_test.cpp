// The numbers game, through the loaded plugin.
#include <doctest/doctest.h>

#include "core/environment/plugin_environment.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using Json = nlohmann::ordered_json;

namespace {

std::unique_ptr<environment::Environment> countdown(const Json& plugin_config = Json::object()) {
  static plugin::Registry registry({}, nullptr);
  return environment::make_plugin_environment("numbers", {{"plugin", "countdown"}, {"plugin_config", plugin_config}},
                                              registry);
}

struct Scored {
  double reward, format, numbers, target;
  bool invalid;
  bool operator==(const Scored&) const = default;
};
constexpr Scored kRight{1, 1, 1, 1, false};
constexpr Scored kNoExpression{0, 0, 0, 0, false};

Scored score(const std::string& response, const Json& record = {{"nums", {3, 5, 7}}, {"target", 26}},
             const std::string& truth = "", const Json& plugin_config = Json::object()) {
  environment::Sample sample;
  sample.response = response;
  sample.ground_truth = truth;
  sample.metadata = &record;
  const environment::Scores scores = countdown(plugin_config)->score(std::span(&sample, 1), 1);
  const auto part = [&](const char* name) { return static_cast<double>(scores.components.at(name)[0]); };
  return {scores.rewards[0], part("format"), part("numbers"), part("target"), scores.invalid[0] != 0};
}

Scored answer(const std::string& expression) { return score("so <answer>" + expression + "</answer>"); }

const float kFormat = 0.1f;  // the default reward of a wrong equation

}  // namespace

TEST_CASE("countdown: an equation with the given numbers that reaches the target is right") {
  for (const char* right : {"3 * 7 + 5", "5+7*3", " ( 7 * 3 ) + 5 = 26 ", "3 \xC3\x97 7 + 5", "5 - -(7 x 3)"}) {
    INFO(right);
    CHECK(answer(right) == kRight);
  }
  CHECK(score("<answer>8 / (3 - 8 / 3)</answer>", {{"numbers", {3, 3, 8, 8}}, {"target", 24}}) == kRight);  // exact
  CHECK(score("<answer>1+1</answer><answer>3*7+5</answer>") == kRight);                                     // the last
  CHECK(score("<answer>4*6</answer>", {{"nums", {"6", "4"}}}, "24") == kRight);  // the target is the ground truth
}

TEST_CASE("countdown: a wrong equation earns the format reward alone") {
  CHECK(answer("3 + 5 + 7") == Scored{kFormat, 1, 1, 0, false});
  CHECK(answer("26") == Scored{kFormat, 1, 0, 1, false});
  CHECK(answer("3 * 7 + 5 + 0") == Scored{kFormat, 1, 0, 1, false});
  CHECK(score("<answer>3 * 7 + 5</answer>", {{"nums", {3, 5, 7, 7}}, {"target", 26}}).numbers == 0);
  CHECK(score("<answer>3 * 7 + 5</answer>", {{"nums", {3, 5, 7, 7}}, {"target", 26}}, "", {{"use_all", false}}) ==
        kRight);
  CHECK(score("<answer>7 / 5</answer>", Json{{"nums", {5, 7}}, {"target", 1}}).target == 0);
  CHECK(score("<answer>3+5+7</answer>", {{"nums", {3, 5, 7}}, {"target", 26}}, "", {{"format_reward", 0.5}}).reward ==
        0.5);
}

TEST_CASE("countdown: the answer stands between the tags that are given") {
  const Json record = {{"nums", {3, 5, 7}}, {"target", 26}};
  for (const std::string tag : {"result", "final"}) {
    const Json settings = {{"tag", tag}};
    CHECK(score("<" + tag + ">3*7+5</" + tag + ">", record, "", settings) == kRight);
    CHECK(score("<answer>3*7+5</answer>", record, "", settings) == kNoExpression);
  }
}

TEST_CASE("countdown: what is no expression earns nothing, and never crashes") {
  std::string deep, wide = "1";
  for (int i = 0; i < 200; ++i) deep += '(';
  for (int i = 0; i < 5000; ++i) wide += "+1";
  for (const std::string& text :
       {std::string(""), std::string("3 *"), std::string("(3"), std::string("3 5"), std::string("3 ** 7"),
        std::string("3.0 + 7"), std::string("3 / (5 - 5)"), std::string("99999999999999999999"),
        std::string("9223372036854775807 * 9"), std::string("system(1)"), std::string("= 26"), deep, wide}) {
    INFO(text.substr(0, 60));
    CHECK(answer(text) == kNoExpression);
  }
  CHECK(score("3 * 7 + 5 = 26") == kNoExpression);  // no tags
  CHECK(score("<answer>3 * 7 + 5") == kNoExpression);
  CHECK(score("</answer><answer>") == kNoExpression);
  CHECK(score("<equation>3*7+5</equation>", {{"nums", {3, 5, 7}}, {"target", 26}}, "", {{"tag", "equation"}}) ==
        kRight);
}

TEST_CASE("countdown: a record without numbers or target is invalid, not a wrong answer") {
  const Json records[] = {Json::object(),
                          {{"nums", {1, 2}}},
                          {{"target", 3}},
                          {{"nums", "1 2"}, {"target", 3}},
                          {{"nums", {1, 2.5}}, {"target", 3}},
                          {{"nums", Json::array()}, {"target", 3}}};
  for (const Json& record : records) CHECK(score("<answer>1+2</answer>", record).invalid);
}

TEST_CASE("countdown: settings that make no sense are refused") {
  const auto refused = [](const Json& settings) { return plugin_test::error_of([&] { countdown(settings); }); };
  CHECK(plugin_test::contains(refused({{"format_reward", 1}}), "format_reward must lie in [0, 1), got 1"));
  CHECK(plugin_test::contains(refused({{"tag", "a>"}}), "tag must be 1 to 64 characters without <, > and /, got 'a>'"));
  CHECK(plugin_test::contains(refused({{"format_rewards", 0}}),
                              "env.numbers.plugin_config.format_rewards is not used by 'countdown'. Did you mean "
                              "format_reward?"));
}
