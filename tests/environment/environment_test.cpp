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
  CHECK(reward("exact_answer", {}, "ÉCOLE", "école") == 1);
  CHECK(reward("exact_answer", {{"ignore_case", false}}, "ÉCOLE", "école") == 0);
  CHECK(reward("exact_answer", {}, "a\u00a0b", "a b") == 1);
  CHECK(reward("exact_answer", {}, "ete", "été") == 0);
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

TEST_CASE("without an answer nothing is right, an empty response neither") {
  for (const char* truth : {"", " ", "\n"}) {
    for (const char* response : {"", " ", "0", "a"}) {
      for (const char* name : {"exact_answer", "last_number", "token_task"}) {
        CAPTURE(name);
        CAPTURE(response);
        CAPTURE(truth);
        CHECK(reward(name, {}, response, truth) == 0);
      }
    }
    CHECK(reward("last_number", {{"format", "bare"}}, "", truth) == 0);
  }
  const auto compares = [](const char* section) {
    static plugin::Registry none({}, nullptr);
    return make("r", Json::parse(section), {none})->compares_answer();
  };
  CHECK(compares(R"({"type": "exact_answer"})"));
  CHECK(compares(R"({"rewards": [{"name": "length", "full_at": 1, "none_at": 2}, {"name": "last_number"}]})"));
  CHECK_FALSE(compares(R"({"type": "format", "regex": "a"})"));
  CHECK_FALSE(compares(R"({"type": "length", "full_at": 1, "none_at": 2})"));
  CHECK_FALSE(compares(R"({"command": ["true"]})"));
  CHECK_FALSE(compares(R"({"rewards": [{"name": "format", "tags": ["a"]}]})"));
}

TEST_CASE("environments tell the answer that they read") {
  const auto answer = [](const std::string& name, const std::string& response) {
    Sample sample;
    sample.response = response;
    return make_environment(name, {})->score(std::span(&sample, 1), 1).answers.at(0);
  };
  CHECK(answer("last_number", "3 + 4 is 7.0") == "7");
  CHECK(answer("exact_answer", " A  b.") == "a b");
}

TEST_CASE("token_task pays for each character in its place") {
  CHECK(reward("token_task", {}, "abcd", "abcd") == 1);
  CHECK(reward("token_task", {}, "abxx", "abcd") == 0.5f);
  CHECK(reward("token_task", {}, "ab", "a") == 0.5f);
  CHECK(reward("token_task", {}, "", "a") == 0);
}

TEST_CASE("metrics of scored samples") {
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
  CHECK(environment_names().size() == 5);
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
