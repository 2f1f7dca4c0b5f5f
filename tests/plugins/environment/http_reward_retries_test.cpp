// Rewards by a server: attempts, deadlines, requests at once.
#include "tests/plugins/environment/http_reward.hpp"
#include "tests/support/toy/program.hpp"

using namespace http_reward_test;
using test_support::Log;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

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

TEST_CASE("http_reward: the samples of a step have one deadline; what has a reward by then keeps it") {
  const Server server([](const Request& request, int) {
    Reply reply = reward(request, 1);
    reply.wait_s = 1;
    return reply;
  });
  const Log log;
  const auto environment = http_reward(quick(server.url(), {{"max_concurrency", 1}, {"deadline_s", 3.5}}));
  const auto began = std::chrono::steady_clock::now();
  const auto scores = score(*environment, std::vector<std::string>(9, "x"));
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(7));
  const auto invalid = std::count(scores.invalid.begin(), scores.invalid.end(), 1);
  CHECK(invalid >= 6);
  CHECK(invalid < 9);
  for (size_t i = 0; i < 9; ++i) CHECK(scores.rewards[i] == (scores.invalid[i] ? 0 : 1));
  SAYS(log.text(), server.url() + ": ");
  SAYS(log.text(),
       " samples were not asked, for deadline_s 3.5 had passed, and are invalid. Where its answers only take "
       "long, raise that, or max_concurrency");
}

TEST_CASE("http_reward: a server that hangs is given up before the host takes the plugin for one that does") {
  const Server server([](const Request&, int) { return Reply{200, "", "", kNever}; });
  const Log log;
  plugin::Options options;
  options.call_limit_s = 5;
  plugin::Registry hasty(options, nullptr);
  ::setenv("no_proxy", "127.0.0.1", 1);
  const auto environment = environment::make_plugin_environment(
      "judge", {{"plugin", "http_reward"}, {"plugin_config", quick(server.url())}}, hasty, {}, nullptr);
  CHECK(score(*environment, {"x", "y"}).invalid == Flags{1, 1});
  SAYS(log.text(), "did not answer within 4.");  // 4.5 s, but for what has passed before
  SAYS(log.text(), " s, and nine tenths of cluster.worker_timeout_s leaves no time to ask again");
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

TEST_CASE("http_reward: Ctrl-C ends a slow call") {
  const Server server([](const Request&, int) { return Reply{200, "", "", kNever}; });
  std::atomic<int> interrupted = 1;
  const auto environment = http_reward(quick(server.url(), {{"timeout_s", kNever}}), &interrupted);
  const auto began = std::chrono::steady_clock::now();
  std::string what;
  try {
    score(*environment, {"x"});
  } catch (const hexad::Interrupted& error) {
    what = error.what();
  }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(100));
  CHECK(what == "env.judge: interrupted, and the rewards of step 6 have not come");
}

TEST_SUITE_END();
