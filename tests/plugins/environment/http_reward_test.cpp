// Rewards by a server, through the loaded plugin.
#include <doctest/doctest.h>

#include <fstream>

#include "core/config/check.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/environment/make.hpp"
#include "core/environment/plugin_environment.hpp"
#include "tests/plugins/environment/fake_server.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/program.hpp"

using namespace hexad;
using fake_server::Reply;
using fake_server::Request;
using fake_server::Server;
using plugin_test::contains;
using plugin_test::error_of;
using test_support::Log;
using Json = nlohmann::ordered_json;
using Floats = std::vector<float>;
using Flags = std::vector<uint8_t>;

namespace {

constexpr double kNever = 600;  // seconds that no test waits

std::unique_ptr<environment::Environment> http_reward(const Json& plugin_config,
                                                      const std::atomic<int>* interrupted = nullptr) {
  ::setenv("no_proxy", "127.0.0.1", 1);
  static plugin::Registry registry({}, nullptr);
  return environment::make_plugin_environment("judge", {{"plugin", "http_reward"}, {"plugin_config", plugin_config}},
                                              registry, {}, interrupted);
}

// For a server at `url`, without waiting.
Json quick(const std::string& url, const Json& more = Json::object()) {
  Json config = {{"url", url}, {"backoff_s", 0.01}, {"timeout_s", 60}};
  config.update(more);
  return config;
}

environment::Scores score(const environment::Environment& environment, const std::vector<std::string>& responses) {
  const Json record = {{"tests", {1, 2}}};
  std::vector<environment::Sample> samples;
  for (const std::string& response : responses) {
    environment::Sample sample;
    sample.prompt = "2 + 2?";
    sample.response = response;
    sample.ground_truth = "4";
    sample.metadata = &record;
    samples.push_back(sample);
  }
  return environment.score(samples, 6);
}

Reply reward(const Request& request, double value) {
  return {200, Json{{"id", Json::parse(request.body).at("id")}, {"reward", value}}.dump()};
}

Reply completion(const std::string& content) {
  return {200, Json{{"choices", {{{"message", {{"role", "assistant"}, {"content", content}}}}}}}.dump()};
}

Json judge(const Json& more = Json::object()) {
  Json settings = {
      {"model", "m"}, {"prompt", "{response}"}, {"score_regex", "Score: *([-0-9.e+]+)"}, {"score_max", 10}};
  settings.update(more);
  for (const auto& entry : more.items()) {
    if (entry.value().is_null()) settings.erase(entry.key());
  }
  return {{"judge", settings}};
}

}  // namespace

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
    found |= request.body == R"({"id":1,"prompt":"2 + 2?","response":")"
                             "\xef\xbf\xbd"
                             R"(","ground_truth":"4","metadata":{"tests":[1,2]},"prompt_tokens":0,"response_tokens":0,)"
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

TEST_CASE("http_reward: 429, 5xx, lost connections and replies without a reward are tried again") {
  const Server server([](const Request& request, int number) -> Reply {
    if (number == 0) return {0, "", "", 0, true};  // of a used connection, libcurl itself tries another
    if (number == 1) return {429, "slow down", "Retry-After: 1\r\n"};
    if (number == 2) return {500, "oops"};
    if (number == 3) return {200, "<html>"};
    if (number == 4) return {200, R"({"id": 0})"};
    return reward(request, 0.5);
  });
  const Log log;
  const auto began = std::chrono::steady_clock::now();
  const auto scores = score(*http_reward(quick(server.url(), {{"retries", 5}})), {"x"});
  CHECK(scores.rewards == Floats{0.5f});
  CHECK(std::chrono::steady_clock::now() - began > std::chrono::milliseconds(900));  // Retry-After
  CHECK(server.requests().size() == 6);
  CHECK(scores.metrics.at("num_reward_failures") == 5);
  SAYS(log.text(), server.url() + " answered HTTP 429: 'slow down' (attempt 2 of 6)");
  SAYS(log.text(), "answered HTTP 500: 'oops' (attempt 3 of 6)");
  SAYS(log.text(), "cannot be asked: ");
  SAYS(log.text(), "gave no reward: want JSON, got '<html>'");
  SAYS(log.text(), "gave no reward: want a finite number as \"reward\", got '{\"id\":0}'");
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

TEST_CASE("http_reward: a server that nobody answers at is not asked for ever") {
  const Log log;
  const auto environment = http_reward(quick("http://127.0.0.1:9/", {{"retries", 1}, {"max_concurrency", 2}}));
  const auto scores = score(*environment, std::vector<std::string>(200, "x"));
  CHECK(std::count(scores.invalid.begin(), scores.invalid.end(), 1) == 200);
  CHECK(scores.metrics.at("num_reward_failures") < 40);
  SAYS(log.text(), "http://127.0.0.1:9/ cannot be asked: ");
  SAYS(log.text(), " more failures");
}

TEST_CASE("http_reward: a sample is given up at its deadline, however many retries it has left") {
  const auto ends = [](const std::vector<Reply>& replies, const std::string& says, const Json& more = Json::object()) {
    const Server server([&](const Request&, size_t number) { return replies[std::min(number, replies.size() - 1)]; });
    const Log log;
    Json config = {{"retries", 1000}, {"deadline_s", 3}};
    config.update(more);
    const auto environment = http_reward(quick(server.url(), config));
    const auto began = std::chrono::steady_clock::now();
    CHECK(score(*environment, {"x", "y"}).invalid == Flags{1, 1});
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(60));
    SAYS(log.text(), says);
  };
  const Reply slow = {200, "", "", kNever};
  ends({{503, "busy"}}, "answered HTTP 503: 'busy', and deadline_s 3 leaves no time to ask again (attempt ");
  ends({{429, "", "Retry-After: 20\r\n"}}, "deadline_s 3 leaves no time to ask again (attempt 1 of 1001)");
  ends({slow}, "did not answer within 3 s, and deadline_s 3");
  // One request at a time: the second sample's lasts beyond the deadline of the first, whose next attempt waits for it.
  ends({{500, "", "", 0.2}, slow}, "answered HTTP 500: '', and deadline_s 3 leaves no time to ask again\n",
       {{"max_concurrency", 1}, {"timeout_s", 8}, {"backoff_s", 1}});
}

TEST_CASE("http_reward: attempts are backoff_s and more apart, and none begins after deadline_s") {
  const auto attempts = [](const Json& more) {
    const Server server([](const Request&, int) { return Reply{503, "busy"}; });
    const Log log;
    Json config = quick(server.url(), {{"retries", 3}});
    config.update(more);
    CHECK(score(*http_reward(config), {"x"}).invalid == Flags{1});
    return server.requests().size();
  };
  CHECK(attempts({{"backoff_s", 0.02}}) == 4);
  // A pause is the half of backoff_s at least.
  for (const double backoff_s : {5.0, 20.0}) CHECK(attempts({{"backoff_s", backoff_s}, {"deadline_s", 2}}) == 1);
  CHECK(attempts({{"backoff_s", 0.8}, {"deadline_s", 0.3}}) == 1);
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

TEST_CASE("http_reward: no more requests at once than max_concurrency") {
  std::atomic<int> asked = 0;
  const Server server([&](const Request& request, int) {
    ++asked;
    toy::eventually([&] { return asked >= 3; }, 30);  // the first ones meet
    Reply reply = reward(request, 1);
    reply.wait_s = 0.02;
    return reply;
  });
  const auto environment = http_reward(quick(server.url(), {{"max_concurrency", 3}}));
  CHECK(score(*environment, std::vector<std::string>(20, "x")).rewards == Floats(20, 1));
  CHECK(server.most_at_once() == 3);
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

TEST_CASE("http_reward: Ctrl-C ends a slow call") {
  const Server server([](const Request&, int) { return Reply{200, "", "", kNever}; });
  std::atomic<int> interrupted = 1;
  const auto environment = http_reward(quick(server.url(), {{"timeout_s", kNever}}), &interrupted);
  const auto began = std::chrono::steady_clock::now();
  std::string what;
  try {
    score(*environment, {"x"});
  } catch (const environment::Interrupted& error) {
    what = error.what();
  }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(100));
  CHECK(what == "env.judge: interrupted, and the rewards of step 6 have not come");
}

TEST_CASE("http_reward: the page's configurations work") {
  ::setenv("JUDGE_KEY", "key", 1);
  ::setenv("JUDGE_PROJECT", "p", 1);
  const std::filesystem::path source = std::getenv("HEXAD_SOURCE_DIR");
  std::ifstream page(source / "docs/rewards.md");
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      inside = line == "```yaml";
      if (inside) found.emplace_back();
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  const Server server([](const Request& request, int) -> Reply {
    const Json body = Json::parse(request.body);
    if (body.is_object()) return completion("Score: 5");
    Json answers = Json::array();
    for (const Json& each : body) answers.push_back({{"id", each.at("id")}, {"reward", 0.5}});
    return {200, answers.dump()};
  });
  int tried = 0;
  for (const std::string& block : found) {
    if (!contains(block, "http_reward")) continue;
    INFO(block);
    const auto file = std::filesystem::temp_directory_path() / fmt::format("hexad-rewards-{}.yaml", ::getpid());
    std::ofstream(file) << fmt::format("defaults: {}/configs/quickstart.yaml\n", source.string()) << block;
    const config::RunConfig run = config::run_config(config::resolve(file));
    std::filesystem::remove(file);
    Json plugin_config = run.env.at(run.data.train.at(0).env_name).at("plugin_config");
    plugin_config["url"] = server.url();
    CHECK(score(*http_reward(plugin_config), std::vector<std::string>(20, "x")).rewards == Floats(20, 0.5f));
    ++tried;
  }
  CHECK(tried == 2);
}

TEST_CASE("http_reward: wrong keys are refused") {
  ::unsetenv("HEXAD_TEST_UNSET");
  ::setenv("HEXAD_TEST_LINES", "a\nb", 1);
  const auto refuses = [](const Json& config) { return error_of([&] { http_reward(config); }); };
  const auto with = [](const Json& more) { return quick("http://127.0.0.1:9/", more); };
  SAYS(refuses(Json::object()), "url: want http://HOST:PORT/PATH or https://..., got ''");
  SAYS(refuses({{"url", "ftp://x"}}), "got 'ftp://x'");
  SAYS(refuses(with({{"timeout_s", 0}})), "timeout_s: want more than 0, got 0");
  SAYS(refuses(with({{"retries", -1}})), "retries: want 0 to 1000, got -1");
  SAYS(refuses(with({{"retries", INT64_MAX}})), "retries: want 0 to 1000, got 9223372036854775807");
  SAYS(refuses(with({{"max_concurrency", 0}})), "max_concurrency: want 1 to 4096, got 0");
  SAYS(refuses(with({{"deadline_s", 0}})), "deadline_s: want more than 0, got 0");
  SAYS(refuses(with({{"api_key_env", "HEXAD_TEST_UNSET"}})),
       "api_key_env: the variable HEXAD_TEST_UNSET of the environment is not set. Export it before hexad train");
  SAYS(refuses(with({{"api_key_env", "HEXAD_TEST_LINES"}})), "the variable HEXAD_TEST_LINES holds a line end");
  SAYS(refuses(with({{"headers", {{"A", 1}}}})), "headers: want a mapping of texts, got {\"A\":1}");
  SAYS(refuses(with({{"retrys", 1}})), "plugin_config.retrys is not used by 'http_reward'. Did you mean retries?");
  SAYS(refuses({{"uri", "http://x"}}), "url: want http://HOST:PORT/PATH or https://..., got ''");
  SAYS(refuses(with({{"frobnicate", 1}})), "plugin_config.frobnicate is not used by 'http_reward'.");
  SAYS(refuses(with(judge({{"modle", "m"}}))), "judge.modle is not used by 'http_reward'. Did you mean judge.model?");
  static plugin::Registry registry({}, nullptr);
  const auto section_refuses = [&](const Json& section) {
    return error_of([&] { environment::make("mine", section, {registry}); });
  };
  SAYS(section_refuses({{"plugin", "http_reward"}, {"uri", "http://x"}}), "env.mine: ");
  SAYS(refuses(with(judge({{"model", nullptr}}))), "judge: want both model and prompt, got prompt alone");
  SAYS(refuses(with(judge({{"prompt", nullptr}}))), "judge: want both model and prompt, got model alone");
  SAYS(refuses(with(judge({{"prompt", "{respone}"}}))),
       "no such placeholder: {respone}; there are {prompt}, {response}");
  SAYS(refuses(with(judge({{"prompt", "good?"}}))), "judge.prompt: want {response} in it");
  SAYS(refuses(with(judge({{"score_regex", "("}}))),
       "judge.score_regex: '(' is no regular expression (PCRE2): missing");
  SAYS(refuses(with(judge({{"score_json", "/a"}}))),
       "judge: want one of score_regex ('Score: *([0-9.]+)') and score_json (/score), got both");
  SAYS(refuses(with(judge({{"score_regex", nullptr}}))), "got neither");
  SAYS(refuses(with(judge({{"score_regex", nullptr}, {"score_json", "a"}}))),
       "judge.score_json: want a JSON pointer, as /score, got 'a'");
  SAYS(refuses(with(judge({{"score_max", 0}}))), "judge.score_max: want more than score_min, 0, got 0");
  SAYS(refuses(with(judge({{"body", "x"}}))), "judge.body: want a mapping, got \"x\"");
  Json batched = judge();
  batched["batch_size"] = 2;
  SAYS(refuses(with(batched)), "batch_size: want 1 for a judge, which sees one response at a time, got 2");
}

TEST_SUITE_END();
