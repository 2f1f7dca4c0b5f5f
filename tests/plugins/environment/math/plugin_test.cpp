// The math environment through the loaded plugin: by the name of its section, as NeMo-RL's configurations have it.
#include <doctest/doctest.h>

#include "core/environment/make.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using Json = nlohmann::ordered_json;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

plugin::Registry& registry() {
  static plugin::Registry plugins({}, nullptr);
  return plugins;
}

environment::Scores scores(const Json& section, const std::string& response, const std::string& truth) {
  environment::Sample sample;
  sample.response = response;
  sample.ground_truth = truth;
  return environment::make("math", section, {registry()})->score(std::span(&sample, 1), 1);
}

float reward(const Json& section, const std::string& response, const std::string& truth) {
  return scores(section, response, truth).rewards.at(0);
}

Json of(const char* verifier) { return {{"verifier_type", verifier}}; }

const Json kDapo = {{"math_verify_impl", "dapo_math_verify"}};

}  // namespace

TEST_CASE("math judges by its verifier type and implementation") {
  CHECK(reward({}, "so \\boxed{\\frac{1}{2}}", "0.5") == 1);
  CHECK(reward({}, "the answer is 12", "\\boxed{12}") == 1);
  CHECK(reward({}, "the answer is 13", "12") == 0);
  CHECK(reward(kDapo, "Answer: \\frac12", "\\frac{1}{2}") == 1);
  CHECK(reward(kDapo, "Answer: 0.5", "\\frac{1}{2}") == 0);
  CHECK(reward(of("english_multichoice"), "Answer: C", "C") == 1);
  CHECK(reward(of("english_multichoice"), "Antwort: C", "C") == 0);
  CHECK(reward(of("multilingual_multichoice"), "Antwort: C", "C") == 1);
}

TEST_CASE("without an answer nothing is right for math") {
  for (const char* truth : {"", " \n"}) {
    for (const char* response : {"", "Answer: $", "Answer: ", "\\boxed{}", "0"}) {
      for (const Json& section :
           {Json(Json::object()), kDapo, of("english_multichoice"), of("multilingual_multichoice")})
        CHECK(reward(section, response, truth) == 0);
    }
  }
}

TEST_CASE("math tells the answer that it read") {
  const auto answer = [](const Json& section, const std::string& response) {
    return scores(section, response, "C").answers.at(0);
  };
  CHECK(answer({}, "first 3, then \\boxed{\\frac{1}{2}}") == answer({}, "so $\\dfrac{1}{2}$ it is"));
  CHECK(answer({}, "the answer is 12") == "12");
  CHECK(answer({}, "no idea") == "");
  CHECK(answer(kDapo, "Answer: 1,200") == "1200");
  CHECK(answer(kDapo, "1200") == "");
  CHECK(answer(of("english_multichoice"), "Answer: B") == "B");
  CHECK(answer(of("multilingual_multichoice"), "Antwort: B") == "B");
  CHECK(answer(of("multilingual_multichoice"), "B") == "");
}

TEST_CASE("math refuses what it does not know, as a part of a sum too") {
  const auto refused = [](const Json& section) {
    return error_of([&] { environment::make("math", section, {registry()}); });
  };
  CHECK(contains(refused(of("english_multichoise")), "env.math.verifier_type: "));
  CHECK(contains(refused(of("english_multichoise")), "english_multichoice"));
  CHECK(refused({{"verifier_typ", "math"}}) == "env.math.verifier_typ: unknown key, did you mean 'verifier_type'?");
  CHECK(refused({{"rewards", {{{"name", "math"}, {"verifier_typ", "math"}}}}}) ==
        "env.math.rewards[0].verifier_typ: unknown key, did you mean 'verifier_type'?");
  CHECK(reward({{"rewards", {{{"name", "math"}, {"weight", 2}, {"num_workers", 4}}}}}, "it is 7", "7") == 2);
  CHECK(reward({{"type", "math"}, {"num_workers", 4}, {"stop_strings", nullptr}}, "it is 7", "7") == 1);
}

TEST_CASE("math scores what no response should be") {
  for (const std::string& response :
       {std::string(), std::string(1000, '\0'), std::string("\xff\xfe \xc3 5 \xed\xa0\x80")})
    CHECK(reward({}, response, "1") == 0);
  CHECK(reward({}, "it is 7", "") == 0);
}
