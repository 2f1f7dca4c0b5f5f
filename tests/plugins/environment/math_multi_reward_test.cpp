// NeMo-RL's math_multi_reward, through the loaded plugin.
#include <doctest/doctest.h>

#include "core/environment/make.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using Json = nlohmann::ordered_json;

namespace {

std::unique_ptr<environment::Environment> made(const Json& section = {}) {
  static plugin::Registry registry({}, nullptr);
  return environment::make("math_multi_reward", section, {registry});
}

}  // namespace

TEST_CASE("math_multi_reward: it pays for three parts, and tells the answer") {
  const auto environment = made();
  const auto score = [&](const std::string& response) {
    environment::Sample sample;
    sample.response = response;
    sample.ground_truth = "4";
    return environment->score(std::span(&sample, 1), 1);
  };
  const auto parts = [&](const std::string& response) {
    const environment::Scores scores = score(response);
    return std::vector<float>{scores.components.at("correctness")[0], scores.components.at("integer")[0],
                              scores.components.at("format")[0], scores.rewards[0]};
  };
  CHECK(parts("<think>2 + 2 = 4</think>\n<answer>4</answer>") == std::vector<float>{1, 1, 1, 3});
  CHECK(parts("<think>2 + 2</think>\n<answer>4.5</answer>") == std::vector<float>{0, 0, 1, 1});
  CHECK(parts("<think>2 + 2 = 4\n<answer> 4 </answer>") == std::vector<float>{1, 1, 0, 2});
  CHECK(parts("<think>a</think>\n<answer>3</answer> <answer>4</answer>") == std::vector<float>{1, 1, 0, 2});
  CHECK(parts("four") == std::vector<float>{0, 0, 0, 0});
  CHECK(score("<think>a</think>\n<answer> 4 </answer>").answers == std::vector<std::string>{"4"});
}

TEST_CASE("math_multi_reward: answers are compared in one way") {
  CHECK_NOTHROW(made({{"math_verify_impl", "hf_math_verify"}, {"num_workers", 4}}));
  const std::string error = plugin_test::error_of([] {
    made({{"plugin", "math_multi_reward"}, {"math_verify_impl", "dapo_math_verify"}});
  });
  CHECK_MESSAGE(plugin_test::contains(error, "math_verify_impl: want hf_math_verify, got 'dapo_math_verify'"), error);
}

TEST_CASE("math_multi_reward: without an answer nothing is correct") {
  environment::Sample sample;
  for (const char* response : {"", "<think>a</think>\n<answer></answer>"}) {
    sample.response = response;
    CHECK(made()->score(std::span(&sample, 1), 1).components.at("correctness")[0] == 0);
  }
}
