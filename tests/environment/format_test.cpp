#include "core/environment/environment.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::environment;
using Json = nlohmann::ordered_json;

namespace {

auto make_format(const Json& arguments) { return make_environment("format", arguments); }

float reward(const Json& arguments, const std::string& response) {
  Sample sample;
  sample.response = response;
  const Scores scores = make_format(arguments)->score(std::span(&sample, 1), 1);
  CHECK(scores.invalid[0] == 0);
  return scores.rewards[0];
}

}  // namespace

TEST_CASE("format: tags in order, each once, nothing but white space between") {
  const Json tags = {{"tags", {"think", "answer"}}};
  CHECK(reward(tags, "<think>a\nb</think>\n<answer>4</answer>") == 1);
  CHECK(reward(tags, " <think></think><answer></answer>\n") == 1);
  CHECK(reward(tags, "<think>a<b>c</b></think> <answer>x</answer>") == 1);
  for (const char* bad :
       {"", "<think>a</think>", "<answer>4</answer><think>a</think>", "<think>a</think>so<answer>4</answer>",
        "<think>a</think><answer>4</answer> end", "Well <think>a</think><answer>4</answer>",
        "<think>a<think></think><answer>4</answer>", "<think>a</think><answer>4</answer></answer>",
        "<think>a<answer>b</think>4</answer>", "<think>a</think><answer>4", "<Think>a</Think><answer>4</answer>"}) {
    INFO(bad);
    CHECK(reward(tags, bad) == 0);
  }
  CHECK(reward({{"tags", {"think", "answer"}}, {"prefix", "<think>\n"}}, "a</think><answer>4</answer>") == 1);
}

TEST_CASE("format: a regular expression has to match the whole response, over lines") {
  const Json regex = {{"regex", "<think>\\n.*?\\n</think>\\n<answer>\\n.*?\\n</answer>"}};
  CHECK(reward(regex, "<think>\na\nb\n</think>\n<answer>\n4\n</answer>") == 1);
  CHECK(reward(regex, "<think>\na\nb\n</think>\n<answer>\n4\n</answer>\n") == 0);
  CHECK(reward({{"regex", "[0-9]+"}}, "12\xff") == 0);
}

TEST_CASE("format: a regular expression that does not come to an end makes the sample invalid") {
  const std::string response(60, 'a');
  Sample sample;
  sample.response = response;
  const Scores scores = make_format({{"regex", "(a+)+b"}})->score(std::span(&sample, 1), 1);
  CHECK(scores.rewards[0] == 0);
  if (scores.invalid[0])
    CHECK(scores.why_invalid == "env.format.regex takes too many steps on a response: PCRE2 gave it up");
  const Scores second = make_format({{"regex", "(a|aa)+$(?<!a)"}})->score(std::span(&sample, 1), 1);
  CHECK(second.invalid[0] == 1);
}

TEST_CASE("format: wrong arguments are refused") {
  const auto refuses = [](const Json& arguments, const char* says) {
    CHECK_THROWS_WITH_AS(make_format(arguments), doctest::Contains(says), Error);
  };
  refuses(Json::object(), "env.format: want one of tags (as [think, answer]) and regex, got neither");
  refuses({{"tags", {"a"}}, {"regex", "b"}}, "got both");
  refuses({{"tags", {"<think>"}}}, "env.format.tags: want names as think, without < and >, got '<think>'");
  refuses({{"tags", "think"}}, "env.format.tags: want a list of texts, got \"think\"");
  refuses({{"regex", "(a"}},
          "env.format.regex: '(a' is no regular expression (PCRE2): missing closing parenthesis at offset 2");
  refuses({{"regexp", "a"}}, "env.format.regexp: unknown key, did you mean 'regex'?");
}
