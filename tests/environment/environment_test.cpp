#include "core/environment/environment.hpp"

#include <doctest/doctest.h>

#include "core/environment/make.hpp"
#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::environment;
using Json = nlohmann::ordered_json;

namespace {

float reward(const std::string& name, const Json& arguments, const std::string& response, const std::string& truth,
             bool truncated = false) {
  Sample sample;
  sample.response = response;
  sample.ground_truth = truth;
  sample.truncated = truncated;
  return make_environment(name, arguments)->score(std::span(&sample, 1), 1).rewards[0];
}

}  // namespace

TEST_CASE("exact_answer compares normalised text") {
  CHECK(reward("exact_answer", {}, "  Two  words.\n", "two words") == 1);
  CHECK(reward("exact_answer", {}, "two", "three") == 0);
  CHECK(reward("exact_answer", {{"ignore_case", false}}, "Two", "two") == 0);
  CHECK(reward("exact_answer", {}, "b", "b", true) == 1);
  CHECK(reward("exact_answer", {{"require_end", true}}, "b", "b", true) == 0);
}

TEST_CASE("last_number wants the right last number of a response that ended") {
  CHECK(reward("last_number", {}, "3 + 4 is 7.", "7") == 1);
  CHECK(reward("last_number", {}, "3 + 4 is 7.", "7", true) == 0);
  CHECK(reward("last_number", {}, "7 or maybe 8", "7") == 0);
  CHECK(reward("last_number", {}, "-1,234.50", "-1234.5") == 1);
  CHECK(reward("last_number", {}, "none", "7") == 0);
  CHECK(reward("last_number", {{"format", "bare"}}, " 7\n", "7") == 1);
  CHECK(reward("last_number", {{"format", "bare"}}, "It is 7", "7") == 0);
}

TEST_CASE("math judges by its verifier type and implementation") {
  CHECK(reward("math", {}, "so \\boxed{\\frac{1}{2}}", "0.5") == 1);
  CHECK(reward("math", {}, "the answer is 12", "\\boxed{12}") == 1);
  CHECK(reward("math", {}, "the answer is 13", "12") == 0);
  const Json dapo = {{"math_verify_impl", "dapo_math_verify"}};
  CHECK(reward("math", dapo, "Answer: \\frac12", "\\frac{1}{2}") == 1);
  CHECK(reward("math", dapo, "Answer: 0.5", "\\frac{1}{2}") == 0);
  CHECK(reward("math", {{"verifier_type", "english_multichoice"}}, "Answer: C", "C") == 1);
  CHECK(reward("math", {{"verifier_type", "english_multichoice"}}, "Antwort: C", "C") == 0);
  CHECK(reward("math", {{"verifier_type", "multilingual_multichoice"}}, "Antwort: C", "C") == 1);
  CHECK_THROWS_WITH_AS(make_environment("math", {{"verifier_type", "english_multichoise"}}),
                       doctest::Contains("env.math.verifier_type: want one of math, english_multichoice"), Error);
}

TEST_CASE("math_multi_reward pays for three parts") {
  const auto environment = make_environment("math_multi_reward", {});
  const auto parts = [&](const std::string& response) {
    Sample sample;
    sample.response = response;
    sample.ground_truth = "4";
    const Scores scores = environment->score(std::span(&sample, 1), 1);
    return std::vector<float>{scores.components.at("correctness")[0], scores.components.at("integer")[0],
                              scores.components.at("format")[0], scores.rewards[0]};
  };
  CHECK(parts("<think>2 + 2 = 4</think>\n<answer>4</answer>") == std::vector<float>{1, 1, 1, 3});
  CHECK(parts("<think>2 + 2</think>\n<answer>4.5</answer>") == std::vector<float>{0, 0, 1, 1});
  CHECK(parts("<think>2 + 2 = 4\n<answer> 4 </answer>") == std::vector<float>{1, 1, 0, 2});
  CHECK(parts("<think>a</think>\n<answer>3</answer> <answer>4</answer>") == std::vector<float>{1, 1, 0, 2});
  CHECK(parts("four") == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("environments tell the answer that they read") {
  const auto answer = [](const std::string& name, const Json& arguments, const std::string& response,
                         const std::string& truth = "C") {
    Sample sample;
    sample.response = response;
    sample.ground_truth = truth;
    return make_environment(name, arguments)->score(std::span(&sample, 1), 1).answers.at(0);
  };
  const auto of = [](const char* type) { return Json{{"verifier_type", type}}; };
  CHECK(answer("math", {}, "first 3, then \\boxed{\\frac{1}{2}}") == answer("math", {}, "so $\\dfrac{1}{2}$ it is"));
  CHECK(answer("math", {}, "the answer is 12", "7") == "12");
  CHECK(answer("math", {}, "no idea") == "");
  CHECK(answer("math", {{"math_verify_impl", "dapo_math_verify"}}, "Answer: 1,200") == "1200");
  CHECK(answer("math", {{"math_verify_impl", "dapo_math_verify"}}, "1200") == "");
  CHECK(answer("math", of("english_multichoice"), "Answer: B") == "B");
  CHECK(answer("math", of("multilingual_multichoice"), "Antwort: B") == "B");
  CHECK(answer("math", of("multilingual_multichoice"), "B") == "");
  CHECK(answer("math_multi_reward", {}, "<think>a</think>\n<answer> 4 </answer>") == "4");
  CHECK(answer("last_number", {}, "3 + 4 is 7.0") == "7");
  CHECK(answer("exact_answer", {}, " A  b.") == "a b");
}

TEST_CASE("token_task pays for each character in its place") {
  CHECK(reward("token_task", {}, "abcd", "abcd") == 1);
  CHECK(reward("token_task", {}, "abxx", "abcd") == 0.5f);
  CHECK(reward("token_task", {}, "ab", "a") == 0.5f);
  CHECK(reward("token_task", {}, "", "a") == 0);
}

TEST_CASE("metrics of the math environment") {
  std::vector<Sample> samples(4);
  for (int i = 0; i < 4; ++i) {
    samples[i].prompt_tokens = 10;
    samples[i].response_tokens = i + 1;
  }
  samples[3].truncated = true;
  const Scores scores{{0, 1, 0, 1}, {0, 0, 0, 0}, {}, {}};
  const auto metrics = environment_metrics(samples, scores, 2);
  CHECK(metrics.at("accuracy") == 0.25);
  CHECK(metrics.at("pass@samples_per_prompt") == 0.5);
  CHECK(metrics.at("fraction_of_samples_properly_ended") == 0.75);
  CHECK(metrics.at("num_problems_in_batch") == 4);
  CHECK(metrics.at("generation_lengths") == 2.5);
  CHECK(metrics.at("prompt_lengths") == 10);
  CHECK(metrics.at("correct_solution_generation_lengths") == 2);
  CHECK_FALSE(metrics.contains("num_invalid_samples"));
  CHECK(environment_metrics(samples, {{0, 1, 0, 1}, {0, 0, 1, 0}, {}, {}}).at("num_invalid_samples") == 1);
  const auto passed = [&](std::vector<uint8_t> invalid) {
    return environment_metrics(samples, {{0, 1, 0, 0}, std::move(invalid), {}, {}}, 2).at("pass@samples_per_prompt");
  };
  CHECK(passed({0, 0, 1, 0}) == 0.5);
  CHECK(passed({0, 0, 1, 1}) == 1);  // a prompt without a valid sample is none
  CHECK(passed({1, 1, 0, 0}) == 0);
  CHECK(passed({1, 1, 1, 1}) == 0);
}

TEST_CASE("environments are checked by name and key") {
  CHECK(environment_names().size() == 7);
  CHECK_THROWS_WITH_AS(make_environment("exact_anwser", {}), doctest::Contains("did you mean 'exact_answer'?"), Error);
  CHECK_THROWS_WITH_AS(make_environment("last_number", {{"formt", "bare"}}),
                       doctest::Contains("env.last_number.formt: unknown key, did you mean 'format'?"), Error);
  CHECK_THROWS_WITH_AS(make_environment("last_number", {{"format", "loose"}}),
                       doctest::Contains("env.last_number.format: want one of any, bare"), Error);
  static plugin::Registry none({}, nullptr);
  const config::Catalog catalog{yaml::Node(yaml::Node::Map{})};
  const auto refuses = [&](const char* section, const char* says) {
    const auto json = nlohmann::ordered_json::parse(section);
    INFO(section);
    CHECK_THROWS_WITH_AS(make("r", json, {none}), doctest::Contains(says), Error);
    CHECK_THROWS_WITH_AS(check_section("r", json, catalog), doctest::Contains(says), Error);
  };
  refuses(R"({"type": "formt"})", "env.r.type: unknown environment 'formt', did you mean 'format'?; known: ");
  refuses(R"({"type": "regex"})", "env.r.type: unknown environment 'regex'; known: ");
  refuses(R"({"type": "format", "regexp": "a"})", "env.r.regexp: unknown key, did you mean 'regex'?");
  refuses(R"({"type": "format"})", "env.r: want one of tags");
  refuses(R"({"xyzzy": 1})", "env_name: unknown environment 'r'");
  refuses(R"({"command": ["no-such-program"]})", "env.r.command: no program 'no-such-program'");
  refuses(R"({"rewards": [{"name": "fromat"}]})",
          "env.r.rewards[0].name: unknown environment 'fromat', did you mean 'format'?");
  CHECK_NOTHROW(check_section("r", {{"plugin", "no-such-plugin"}, {"any", 1}}, catalog));
  CHECK_NOTHROW(check_section("r", {{"command", {"sh", "-c", "touch never"}}}, catalog));  // starts nothing
  CHECK_THROWS_WITH_AS(make("r", {{"plugin", "no-such-plugin"}}, {none}), doctest::Contains("env.r: "), Error);
  CHECK_THROWS_WITH_AS(make_environment("exact_answer", {{"ignore_case", 1}}), doctest::Contains("want true or false"),
                       Error);
}
