// NeMo-RL's math_multi_reward, for responses "<think>..</think>\n<answer>..</answer>": the reward is the sum of three
// parts. The answer is compared letter by letter.
//
// env.math_multi_reward: {}; under a name of your own with `type: math_multi_reward`
#include <hexad/environment.hpp>

#include <algorithm>

namespace math_multi_reward {
namespace {

using namespace hexad::sdk;

constexpr std::string_view kOpen = "<answer>", kClose = "</answer>", kThink = "<think>", kJoint = "</think>\n<answer>";

// Python's strip() of ASCII.
std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F); };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

// What the last <answer> says, or all of a response without one.
std::string_view last_answer(std::string_view response) {
  const size_t open = response.rfind(kOpen);
  const std::string_view answer = open == response.npos ? response : response.substr(open + kOpen.size());
  return trimmed(answer.substr(0, answer.find(kClose)));
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_form(std::string_view response) {
  const auto once = [&](std::string_view tag) {
    return response.find(tag) != response.npos && response.find(tag) == response.rfind(tag);
  };
  std::string_view body = response;
  if (body.ends_with('\n')) body.remove_suffix(1);
  const size_t joint = body.find(kJoint, kThink.size());
  return body.starts_with(kThink) && body.ends_with(kClose) && joint != body.npos && once(kOpen) && once(kClose);
}

class MathMultiReward {
 public:
  enum Component : size_t { kCorrectness, kInteger, kFormat };
  static constexpr const char* components[] = {"correctness", "integer", "format"};

  MathMultiReward(const Call&, const Config& config) {
    const std::string how = config.get("math_verify_impl", "hf_math_verify");
    if (how != "hf_math_verify")
      fail(HEXAD_INVALID_ARGUMENT, "math_verify_impl: want hf_math_verify, got '%.80s'", how.c_str());
  }

  void score(const Call&, const SampleView& sample, ScoreOut& out) const {
    const std::string_view answer = last_answer(sample.response());
    out.component(kCorrectness) = !answer.empty() && answer == sample.ground_truth();
    out.component(kInteger) = is_digits(answer);
    out.component(kFormat) = has_form(sample.response());
    out.reward() = out.component(kCorrectness) + out.component(kInteger) + out.component(kFormat);
    out.answer(std::string(answer));
  }
};

}  // namespace
}  // namespace math_multi_reward

HEXAD_CPP_ENVIRONMENT(math_multi_reward::MathMultiReward, "math_multi_reward", "1.0.0", "Apache-2.0")
