// Rewards by a server that is a judge: a model that is asked for a score.
#include "tests/plugins/environment/http_reward.hpp"

using namespace http_reward_test;
using test_support::Log;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("http_reward: a judge is asked with the filled prompt, and its last score counts, scaled") {
  const Server server([](const Request& request, int) -> Reply {
    const std::string asked = Json::parse(request.body).at("messages").back().at("content");
    return completion("Score: 1 would be unfair.\n" + asked.substr(asked.find("Score")));
  });
  const auto environment = http_reward(quick(server.url("/v1/chat/completions"),
                                             judge({{"prompt", "P {prompt} R {response} G {ground_truth} {\"x\": 1}"},
                                                    {"system", "Be just."},
                                                    {"temperature", 0.25},
                                                    {"max_tokens", 9},
                                                    {"body", {{"seed", 3}, {"max_tokens", 12}}}})));
  const auto scores = score(*environment, {"{ground_truth} Score: 10", "Score: 0", "Score: 2.5e0"});
  CHECK(scores.rewards == Floats{1, 0, 0.25f});
  CHECK(scores.invalid == Flags{0, 0, 0});
  bool found = false;
  for (const Request& request : server.requests())
    found |= Json::parse(request.body) ==
             Json::parse(R"({"model": "m", "messages": [{"role": "system", "content": "Be just."}, {"role": "user",
                             "content": "P 2 + 2? R {ground_truth} Score: 10 G 4 {\"x\": 1}"}], "temperature": 0.25,
                             "max_tokens": 12, "seed": 3})");
  CHECK(found);
}

TEST_CASE("http_reward: a judge may reply in JSON") {
  const Server server([](const Request& request, int) -> Reply {
    return completion(Json::parse(request.body).at("messages").back().at("content"));
  });
  const auto environment = http_reward(quick(
      server.url(),
      judge({{"score_regex", nullptr}, {"score_json", "/verdict/score"}, {"score_min", -10}, {"max_tokens", 9}})));
  const auto scores =
      score(*environment, {R"({"verdict": {"score": 0}})", "```json\n{\"verdict\": {\"score\": \"5\"}}\n```"});
  CHECK(scores.rewards == Floats{0.5f, 0.75f});
  for (const Request& request : server.requests()) CHECK(Json::parse(request.body).at("max_tokens") == 9);
}

TEST_CASE("http_reward: a judge's reply without a score makes the sample invalid") {
  const auto why = [](const std::string& content, const Json& settings = Json::object()) {
    const Server server([&](const Request&, int) { return content == "raw" ? Reply{200, "{}"} : completion(content); });
    const Log log;
    const auto environment = http_reward([&] {
      Json config = quick(server.url(), judge(settings));
      config["retries"] = 0;
      return config;
    }());
    CHECK(score(*environment, {"x"}).invalid == Flags{1});
    return log.text();
  };
  SAYS(why("I like it"), "gave no reward: the judge's reply has no score: 'I like it'");
  SAYS(why("Score: ..."), "the judge's score is no number: '...'");
  SAYS(why("Score: 11"), "the judge's score 11.0 is outside of score_min 0.0 to score_max 10.0");
  SAYS(why("raw"), "no chat completion (choices[0].message.content): '{}'");
  SAYS(why("{\"a\": 1}", {{"score_regex", nullptr}, {"score_json", "/b"}}), "the judge's reply has no score");
}

TEST_SUITE_END();
