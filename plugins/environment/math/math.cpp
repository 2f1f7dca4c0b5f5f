// NeMo-RL's math environment: 1 for an equivalent answer, the letter of a choice, or DAPO's normalized text; else 0.
//
// env.math: {math_verify_impl: hf_math_verify, verifier_type: math}; under a name of your own with `type: math`
#include <hexad/environment.hpp>

#include <algorithm>

#include "plugins/environment/math/choices.hpp"
#include "plugins/environment/math/verify.hpp"

namespace hexad::math {
namespace {

using namespace hexad::sdk;

std::string choice(const Config& config, const char* key, const std::vector<std::string>& choices) {
  const std::string value = config.get(key, choices[0]);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  std::string all;
  for (const std::string& each : choices) all += (all.empty() ? "" : ", ") + each;
  fail(HEXAD_INVALID_ARGUMENT, "%s: want one of %s, got '%.80s'", key, all.c_str(), value.c_str());
}

class Math {
 public:
  Math(const Call&, const Config& config) {
    const std::string how = choice(config, "math_verify_impl", {"hf_math_verify", "dapo_math_verify"});
    const std::string what =
        choice(config, "verifier_type", {"math", "english_multichoice", "multilingual_multichoice"});
    is_right_ = what == "english_multichoice"        ? english_choice_is
                : what == "multilingual_multichoice" ? multilingual_choice_is
                : how == "dapo_math_verify"          ? dapo_answer_is
                                                     : verify;
  }

  void score(const Call& call, const SampleView& sample, ScoreOut& out) const {
    if (call.cancelled()) fail(HEXAD_CANCELLED, "cancelled while answers were compared");
    std::string answer;
    const std::string_view gold = sample.ground_truth();
    const bool asked = gold.find_first_not_of(" \t\r\n\f\v") != gold.npos;  // without an answer nothing is right
    out.reward() = is_right_(gold, sample.response(), &answer) && asked ? 1.0f : 0.0f;
    out.answer(std::move(answer));
  }

 private:
  bool (*is_right_)(std::string_view gold, std::string_view response, std::string* answer);
};

}  // namespace
}  // namespace hexad::math

HEXAD_CPP_ENVIRONMENT(hexad::math::Math, "math", "1.0.0", "Apache-2.0")
