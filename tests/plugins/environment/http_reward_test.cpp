// Rewards by a server, through the loaded plugin: what is asked and what its answers are worth.
#include "tests/plugins/environment/http_reward.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace http_reward_test;
using plugin_test::contains;
using test_support::Log;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("http_reward: the server gets the request of a program, and its answer is the reward") {
  const Server server(
      [](const Request& request, int) { return reward(request, Json::parse(request.body).at("response") == "4"); });
  const auto scores = score(*http_reward(quick(server.url("/r?key=1"))), {"4", "\xff", "4"});
  CHECK(scores.rewards == Floats{1, 0, 1});
  CHECK(scores.invalid == Flags{0, 0, 0});
  CHECK(scores.metrics.empty());
  bool found = false;
  for (const Request& request : server.requests()) {
    SAYS(request.head, "POST /r?key=1 HTTP/1.1\r\n");
    SAYS(request.head, "Content-Type: application/json\r\n");
    found |= request.body ==
             R"({"id":1,"prompt":"2 + 2?","response":")"
             "\xef\xbf\xbd"
             R"(","ground_truth":"4","metadata":{"tests":[1,2.50]},"prompt_tokens":0,"response_tokens":0,)"
             R"("truncated":false,"group":0,"step":6,"turn":0})";
  }
  CHECK(found);
}

TEST_CASE("http_reward: a server may reply, and gets its state back at the sample's next turn") {
  const Server server([](const Request& request, int) -> Reply {
    const Json asked = Json::parse(request.body);
    Json answers = Json::array();
    for (const Json& each : asked) {
      Json answer = {{"id", each.at("id")}, {"reward", each.at("turn")}};
      if (each.at("turn") == 0) answer.update(Json::parse(each.at("response").get<std::string>()));
      answers.push_back(answer);
    }
    return {200, answers.dump()};
  });
  const auto environment = http_reward(quick(server.url(), {{"batch_size", 4}}));
  const std::vector<std::string> said = {
      R"({"reply": "go on", "state": {"at": [1]}})", R"({"reply": null, "state": null})",
      R"({"reply": {"content": "", "role": "tool"}, "state": "text"})", R"({"reply": "lost", "invalid": true})"};
  const auto first = score(*environment, said);
  CHECK(first.invalid == Flags{0, 0, 0, 1});
  REQUIRE(first.replies.size() == 4);
  REQUIRE(first.replies[0]);
  CHECK(first.replies[0]->content == "go on");
  CHECK(first.replies[0]->role == "user");
  CHECK_FALSE(first.replies[1]);
  CHECK(first.states[1].is_null());
  REQUIRE(first.replies[2]);  // an empty message is one too
  CHECK(first.replies[2]->content == "");
  CHECK(first.replies[2]->role == "tool");
  CHECK_FALSE(first.replies[3]);

  std::vector<environment::Sample> next(3);
  for (size_t i = 0; i < next.size(); ++i) {
    next[i].turn = 1;
    if (!first.states[i].is_null()) next[i].state = &first.states[i];
  }
  CHECK(environment->score(next, 6).rewards == Floats{1, 1, 1});
  const Json asked = Json::parse(server.requests().back().body);
  CHECK(asked[0].at("turn") == 1);
  CHECK(asked[0].at("state") == Json{{"at", {1}}});
  CHECK_FALSE(asked[1].contains("state"));
  CHECK(asked[2].at("state") == "text");
}

TEST_CASE("http_reward: a reply that is no message is no answer") {
  for (const std::string reply : {"3", R"({"role": "tool"})", R"({"content": "a", "role": 1})"}) {
    const Server server([&](const Request&, int) {
      return Reply{200, R"({"id": 0, "reward": 1, "reply": )" + reply + "}"};
    });
    const Log log;
    CHECK(score(*http_reward(quick(server.url(), {{"retries", 0}})), {"x"}).invalid == Flags{1});
    SAYS(log.text(), "want a text or {\"content\": \"...\", \"role\": \"user\"} as \"reply\", got '");
  }
}

TEST_CASE("http_reward: what cannot be scored is invalid, and the others are scored") {
  const Server server([](const Request& request, int) -> Reply {
    const Json body = Json::parse(request.body);
    const std::string what = body.at("response");
    if (what == "404") return {404, "no such model"};
    if (what == "slow") return {200, "", "", kNever};
    if (what == "nan") return {200, R"({"id": 3, "reward": NaN})"};
    if (what == "huge") return {200, std::string(size_t{8} << 20, 'x')};
    if (what == "other") return {200, R"({"id": 77, "reward": 1})"};
    if (what == "says") return {200, Json{{"id", body.at("id")}, {"invalid", true}}.dump()};
    if (what == "null") return {200, Json{{"id", body.at("id")}, {"reward", nullptr}}.dump()};
    if (what == "large") return {200, Json{{"id", body.at("id")}, {"reward", 1e300}}.dump()};
    if (what == "true") return {200, Json{{"id", body.at("id")}, {"reward", true}}.dump()};
    return reward(request, 2);
  });
  const Log log;
  const auto environment = http_reward(quick(server.url(), {{"retries", 0}, {"timeout_s", 5}}));
  CHECK(score(*environment, {"good", "404", "true", "slow", "says"}).invalid == Flags{0, 1, 0, 1, 1});
  CHECK(score(*environment, {"nan", "huge", "other", "good"}).rewards == Floats{0, 0, 0, 2});
  CHECK(score(*environment, {"null", "large", "true"}).invalid == Flags{1, 1, 0});
  SAYS(log.text(), "answered HTTP 404: 'no such model' (attempt 1 of 1)");
  SAYS(log.text(), "did not answer within 5 s");
  SAYS(log.text(), "answered more than 4 MiB");
  SAYS(log.text(), "want an object with the \"id\" of the request, 2, got '{\"id\":77,\"reward\":1}'");
  CHECK(environment->score({}, 1).rewards.empty());
}

TEST_CASE("http_reward: a reply that is deep or has too many members costs no stack and no time") {
  const std::string deep = std::string(2'000'000, '[') + std::string(2'000'000, ']');
  std::string wide = "{\"a\": 1";
  for (int i = 0; i < 200'000; ++i) wide += fmt::format(",\"k{}\":1", i);
  const Server server([&](const Request& request, int) -> Reply {
    const Json body = Json::parse(request.body);
    const std::string what = body.at(body.contains("messages") ? "model" : "response");
    if (what == "judge") return completion("{\"score\": " + deep + "}");
    return {200, what == "deep" ? deep : wide + "}"};
  });
  const auto began = std::chrono::steady_clock::now();
  const Log log;
  CHECK(score(*http_reward(quick(server.url(), {{"retries", 0}})), {"deep", "wide"}).invalid == Flags{1, 1});
  const Json of_judge = {{"model", "judge"}, {"score_regex", nullptr}, {"score_json", "/score"}};
  CHECK(score(*http_reward(quick(server.url(), judge(of_judge))), {"x"}).invalid == Flags{1});
  SAYS(log.text(), "gave no reward: the JSON has more than 64 levels");
  SAYS(log.text(), "gave no reward: the JSON has an object of more than 1000 members");
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(100));
}

TEST_CASE("http_reward: requests of several samples; a bad one is found by asking one by one") {
  const Server server([](const Request& request, int) -> Reply {
    const Json list = Json::parse(request.body);
    Json answers = Json::array();
    for (const Json& each : list) {
      if (each.at("response") == "bad" && list.size() > 1) return {500, ""};
      if (each.at("response") == "bad") return {200, "[]"};
      answers.push_back({{"id", each.at("id")}, {"reward", each.at("id").get<int>()}});
    }
    return {200, answers.dump()};
  });
  const Log log;
  const auto scores =
      score(*http_reward(quick(server.url(), {{"batch_size", 3}, {"retries", 1}})), {"a", "bad", "c", "d"});
  CHECK(scores.rewards == Floats{0, 0, 2, 3});
  CHECK(scores.invalid == Flags{0, 1, 0, 0});
  SAYS(log.text(), "want a list of 1 answers, got '[]'");
}

TEST_CASE("http_reward: secrets come from the environment, reach the server, and no message") {
  const std::string key = "sk-very-secret", project = "hidden-project";
  ::setenv("HEXAD_TEST_KEY", key.c_str(), 1);
  ::setenv("HEXAD_TEST_PROJECT", project.c_str(), 1);
  const Server server([&](const Request& request, int number) -> Reply {
    if (number == 0) return {401, std::string(195, ' ') + "bad key " + key};
    if (number == 1) return {200, std::string(190, ' ') + project};
    return {500, "you said: " + request.head};
  });
  const Log log;
  std::string url = server.url("/r?token=in-the-url");
  url.replace(0, 7, "http://user:in-the-url@");
  const auto environment = http_reward(quick(url, {{"api_key_env", "HEXAD_TEST_KEY"},
                                                   {"headers_env", {{"X-Project", "HEXAD_TEST_PROJECT"}}},
                                                   {"headers", {{"X-Plain", "seen"}}},
                                                   {"retries", 0}}));
  for (int i = 0; i < 3; ++i) CHECK(score(*environment, {"x"}).invalid == Flags{1});
  for (const Request& request : server.requests()) {
    SAYS(request.head, "\r\nAuthorization: Bearer " + key + "\r\n");
    SAYS(request.head, "\r\nX-Project: " + project + "\r\n");
    SAYS(request.head, "\r\nX-Plain: seen\r\n");
  }
  CHECK(server.requests().size() == 3);
  SAYS(log.text(), "repeats a secret in what it answers, which is not shown");
  SAYS(log.text(), "Bearer ***");
  for (const char* secret : {"sk-very", "in-the-url", "hidden"})
    CHECK_MESSAGE(!contains(log.text(), secret), log.text());
}

TEST_SUITE_END();
