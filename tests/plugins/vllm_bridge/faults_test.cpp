// Whatever servers do, every sample comes once and is the one that nothing has disturbed.
#include <sys/resource.h>

#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

namespace {

// A fault for the first request that comes, or for every one with that prompt token.
FakeVllm::Inject once(Fault fault) {
  return [fault, left = std::make_shared<std::atomic<int>>(1)](const Json&) {
    return left->fetch_sub(1) > 0 ? fault : Fault{};
  };
}

struct Case {
  Fault fault;
  const char* log;
};

const Case kCases[] = {
    {{.kind = Fault::reset, .after = 5}, "broke off its answer"},
    {{.kind = Fault::reset, .after = 0}, "broke off its answer"},
    {{.kind = Fault::truncated, .after = 5}, "broke off its answer"},
    {{.kind = Fault::status, .code = 500}, "answered with status 500: injected"},
    {{.kind = Fault::bad_json, .after = 5}, "sent a wrong answer: an event of the stream is not a JSON object"},
    {{.kind = Fault::bad_count, .after = 5}, "an event of the stream has 2 tokens and 1 log-probs"},
    {{.kind = Fault::too_many, .after = 5}, "13 more tokens, 7 were left of the 12 asked for"},
    {{.kind = Fault::positive, .after = 5}, "a log-prob is not a finite number of at most 0"},
    {{.kind = Fault::error_event, .after = 5}, "the server ended the stream: engine broke"},
    {{.kind = Fault::no_done, .after = 5}, "ended its answer before the stream's last event"},
    {{.kind = Fault::let_go, .after = 5}, "let go of it (no reason)"},
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a sample goes on from its tokens after each kind of failure") {
  for (const Case& c : kCases) {
    CAPTURE(c.log);
    FakeVllm server;
    Harness bridge({&server});
    server.inject(once(c.fault));
    const auto wishes = many(6);
    auto& samples = bridge.run(wishes);
    for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
    CHECK_MESSAGE(LogLines::all().has(c.log), LogLines::all().text());
    CHECK(server.generations().size() == wishes.size() + 1);
    if (c.fault.after == 0 || c.fault.kind == Fault::status) continue;
    CHECK(LogLines::all().has("It goes on with the 5 of 12 tokens that it has"));
    const auto bodies = server.generations();
    const auto again =
        std::find_if(bodies.begin(), bodies.end(), [](const Json& body) { return body.at("token_ids").size() == 9; });
    REQUIRE(again != bodies.end());
    CHECK(again->at("sampling_params").at("max_tokens") == 7);
    const auto first = std::find_if(bodies.begin(), bodies.end(), [&](const Json& body) {
      return std::equal(body.at("token_ids").begin(), body.at("token_ids").end(), again->at("token_ids").begin()) &&
             body.at("token_ids").size() == 4;
    });
    REQUIRE(first != bodies.end());  // it draws on, and not the same numbers again
    CHECK(first->at("sampling_params").at("seed") != again->at("sampling_params").at("seed"));
  }
}

TEST_CASE("a sample whose last message is lost is complete all the same") {
  FakeVllm server;
  Harness bridge({&server});
  server.inject(once({.kind = Fault::no_finish_chunk}));
  Wish wish;
  check_sample(wish, bridge.run({wish}).at(0));
  Wish stopped;
  stopped.id = 1;
  stopped.stop_token_ids = {undisturbed(stopped).first[3]};
  server.inject(once({.kind = Fault::no_finish_chunk}));
  check_sample(stopped, bridge.run({stopped}).at(1), HEXAD_FINISH_STOP);
  CHECK(server.generations().size() == 2);
}

TEST_CASE("a sample that has all its tokens when its server is given up is not sent again") {
  FakeVllm server;
  Harness bridge({&server}, {{"stall_timeout_s", 0.4}});
  server.inject(once({.kind = Fault::hang, .after = 12}));
  Wish wish;
  check_sample(wish, bridge.run({wish}).at(0));
  CHECK(LogLines::all().has("has sent no token for "));
  CHECK(server.generations().size() == 1);
}

TEST_CASE("a length that was not reached is not believed") {
  FakeVllm server;
  Harness bridge({&server});
  server.inject(once({.kind = Fault::short_length, .after = 3}));
  const auto& sample = bridge.run({Wish{}}).at(0);
  CHECK(sample.finish == HEXAD_FINISH_LENGTH);
  CHECK(sample.tokens.size() == 12);
  CHECK(LogLines::all().has("stopped for length after 4 of 12 tokens"));
}

TEST_CASE("a server that is killed loses no sample: others take them") {
  auto first = std::make_unique<FakeVllm>(FakeVllm::Options{.token_ms = 3});
  FakeVllm second({.token_ms = 3});
  Harness bridge({first.get(), &second});
  const auto wishes = many(64, 40);
  while (!(LogLines::all().has(first->url()) && LogLines::all().has(second.url()))) bridge.poll(10);
  bridge.submit(wishes);
  while (first->running() < 8) bridge.poll(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  first->stop();
  auto& samples = bridge.finish();
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  CHECK(LogLines::all().has("vLLM server 0"));
  CHECK(LogLines::all().has("requests go on elsewhere, or when it is back"));
}

TEST_CASE("a server that comes back takes its samples up again") {
  auto server = std::make_unique<FakeVllm>(FakeVllm::Options{.token_ms = 3});
  const int port = server->port();
  Harness bridge({server.get()});
  const auto wishes = many(16, 40);
  bridge.submit(wishes);
  while (server->running() < 16) bridge.poll(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  server = nullptr;
  for (int i = 0; i < 10; ++i) bridge.poll(50);
  server = std::make_unique<FakeVllm>(FakeVllm::Options{.port = port});
  auto& samples = bridge.finish();
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  int64_t continued = 0;
  for (const Json& body : server->generations()) continued += body.at("token_ids").size() > 4;
  CHECK(continued > 0);
}

TEST_CASE("a server that hangs is left after its deadline") {
  FakeVllm hung, other;
  Harness bridge({&hung, &other}, {{"stall_timeout_s", 0.5}});
  while (!(LogLines::all().has(hung.url()) && LogLines::all().has(other.url()))) bridge.poll(10);
  hung.inject([](const Json&) { return Fault{.kind = Fault::hang, .after = 4}; });
  const auto wishes = many(16);
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  CHECK(LogLines::all().has("has sent no token for "));
}

TEST_CASE("three failures in a row open the breaker, one does not") {
  FakeVllm bad, good;
  Harness bridge({&bad, &good});
  while (!(LogLines::all().has(bad.url()) && LogLines::all().has(good.url()))) bridge.poll(10);
  bad.inject([](const Json&) { return Fault{.kind = Fault::status, .code = 503}; });
  const auto wishes = many(40);
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  CHECK(LogLines::all().has("the 3rd failure in a row"));
  FakeVllm once_bad;
  Harness calm({&once_bad});
  once_bad.inject(once({.kind = Fault::status, .code = 503}));
  calm.run(many(8));
  CHECK(!LogLines::all().has("failure in a row"));
}

TEST_CASE("a request that fails wherever it goes ends with an error; its neighbours do not") {
  FakeVllm server;
  Harness bridge({&server}, {{"max_attempts", 3}});
  server.inject([](const Json& body) {
    return body.at("token_ids")[0] == 66 ? Fault{.kind = Fault::status, .code = 500} : Fault{};
  });
  auto wishes = many(8);
  wishes[3].prompt = {66};
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) {
    if (wish.id != 3) check_sample(wish, samples[wish.id]);
  }
  CHECK(samples[3].finish == HEXAD_FINISH_ERROR);
  CHECK(samples[3].error == "3 attempts in a row brought no token; the last server answered with status 500: injected");
}

TEST_CASE("without any server for too long poll fails, and requests live on") {
  auto server = std::make_unique<FakeVllm>(FakeVllm::Options{.token_ms = 3});
  const int port = server->port();
  Harness bridge({server.get()}, {{"lost_timeout_s", 0.5}});
  const auto wishes = many(4, 30);
  bridge.submit(wishes);
  while (server->running() < 4) bridge.poll(5);
  server = nullptr;
  CHECK_THROWS_WITH_AS(bridge.finish(10), doctest::Contains("no vLLM server has been there for"), hexad::sdk::Error);
  try {
    bridge.poll(0);
  } catch (const hexad::sdk::Error& error) {
    CHECK(error.code() == HEXAD_UNAVAILABLE);
    CHECK(std::string(error.what()).find("start them again, or look into their logs") != std::string::npos);
  }
  server = std::make_unique<FakeVllm>(FakeVllm::Options{.port = port});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (bridge.samples.size() < 4 && std::chrono::steady_clock::now() < end) {
    try {
      bridge.poll(100);
    } catch (const hexad::sdk::Error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  for (const Wish& wish : wishes) check_sample(wish, bridge.samples[wish.id]);
}

TEST_CASE("a server that is never there is named with what it said") {
  const auto error_of = [](const FakeVllm& server) -> std::string {
    Harness bridge({&server}, {{"startup_timeout_s", 0.5}});
    bridge.submit({Wish{}});
    try {
      bridge.finish(10);
    } catch (const hexad::sdk::Error& error) {
      return error.what();
    }
    return "";
  };
  FakeVllm gone, sick, old({.version = "0.8.1"});
  gone.stop();
  sick.set_healthy(false);
  const auto check = [&](const FakeVllm& server, const std::string& said) {
    const std::string error = error_of(server);
    CHECK_MESSAGE(error.find("vLLM server 0 (" + server.url() + "): " + said) != std::string::npos, error);
  };
  check(gone, "/health: Failed to connect to 127.0.0.1");
  check(sick, "/health: status 503: engine dead");
  check(old, "vLLM 0.8.1 is older than 0.10.2");
}

TEST_CASE("a server that says nothing of its health is asked again after health_timeout_s") {
  for (const double health_timeout_s : {0.2, 0.4}) {
    FakeVllm server;
    server.gate("/health");
    Harness bridge({&server}, {{"health_timeout_s", health_timeout_s}, {"startup_timeout_s", 4}});
    bridge.submit({Wish{}});
    CHECK_THROWS_WITH_AS(bridge.finish(10), doctest::Contains("/health: Operation timed out"), hexad::sdk::Error);
    CHECK(server.count("GET /health") > 1);
    server.open_gate();
  }
}

TEST_CASE("a request that stalls wherever it goes ends with an error; its neighbours do not") {
  FakeVllm server;
  Harness bridge({&server}, {{"max_attempts", 2}, {"stall_timeout_s", 0.4}});
  server.inject([](const Json& body) {
    return body.at("token_ids")[0] == 66 ? Fault{.kind = Fault::hang, .after = 0} : Fault{};
  });
  auto wishes = many(8);
  wishes[3].prompt = {66};
  auto& samples = bridge.run(wishes, 15);
  for (const Wish& wish : wishes) {
    if (wish.id != 3) check_sample(wish, samples[wish.id]);
  }
  CHECK(samples[3].finish == HEXAD_FINISH_ERROR);
  CHECK(samples[3].error.starts_with("2 attempts in a row brought no token; the last server has sent no token for 0."));
}

TEST_CASE("a stall after new tokens is no attempt in vain") {
  FakeVllm server;
  Harness bridge({&server}, {{"max_attempts", 1}, {"stall_timeout_s", 0.4}});
  server.inject(once({.kind = Fault::hang, .after = 4}));
  check_sample(Wish{}, bridge.run({Wish{}}, 15).at(0));
  CHECK(LogLines::all().has("has sent no token for "));
}

TEST_CASE("all descriptors that this process may have are used, and their lack is no server's fault") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto set_soft = [&](rlim_t soft) {
    const rlimit limit{soft, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  };
  set_soft(before.rlim_max - 1);
  FakeVllm server({.token_ms = 20});  // requests overlap: one connection is not enough
  Harness bridge({&server}, {{"max_attempts", 1}});
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  CHECK(now.rlim_cur == before.rlim_max);
  bridge.run({Wish{.id = 100}});
  LogLines::all().clear();
  set_soft(3);
  const auto wishes = many(6);
  bridge.submit(wishes);
  const std::string told = "this process has as many open files as it may have (3). Requests wait; raise its limit";
  for (int i = 0; i < 5 || (i < 200 && !LogLines::all().has(told)); ++i) bridge.poll(50);
  set_soft(before.rlim_cur);
  auto& samples = bridge.finish();
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  CHECK(LogLines::all().has(told));
  CHECK_MESSAGE(!LogLines::all().has("vLLM server 0"), LogLines::all().text());
}

TEST_CASE("a lack of descriptors in a pause is no server's fault") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  FakeVllm server({.token_ms = 20});
  Harness bridge({&server});
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto wishes = many(6, 60);
  bridge.submit(wishes);
  while (server.running() < 6) bridge.poll(5);  // no connection is left over
  LogLines::all().clear();
  limit.rlim_cur = 3;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  std::thread meanwhile([&] {
    CHECK(soon([] { return LogLines::all().has("no connection to a vLLM server can be opened"); }));
    ::setrlimit(RLIMIT_NOFILE, &before);
  });
  bridge->pause(bridge.service());
  meanwhile.join();
  CHECK(server.paused());
  bridge->resume(bridge.service());
  auto& samples = bridge.finish();
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  CHECK_MESSAGE(!LogLines::all().has("vLLM server 0"), LogLines::all().text());
}

TEST_CASE("a server that answers 500 when it is asked what it is, is asked again") {
  for (const char* path : {"/version", "/is_paused"}) {
    CAPTURE(path);
    FakeVllm server;
    server.refuse(path, 500, 1);
    Harness bridge({&server});
    check_sample(Wish{}, bridge.run({Wish{}}).at(0));
    CHECK(
        LogLines::all().has("is not ready: " + std::string(path) + ": status 500: told to refuse. It is asked again"));
    CHECK(LogLines::all().has("takes requests: vLLM 0.24.0, /inference/v1/generate"));
    bridge.update(1, 0.5f);
    CHECK(server.weights() != 0);
  }
}

TEST_CASE("a wrong API key is named, a right one is sent, and neither is logged") {
  FakeVllm server({.api_key = "sesame"});
  ::setenv("HEXAD_TEST_KEY", "wrong-key-1", 1);
  const Json cfg = {{"startup_timeout_s", 0.5}, {"api_key_env_var", "HEXAD_TEST_KEY"}};
  {
    Harness bridge({&server}, cfg);
    bridge.submit({Wish{}});
    CHECK_THROWS_WITH_AS(bridge.finish(10), doctest::Contains("it refuses the API key"), hexad::sdk::Error);
    CHECK(!LogLines::all().has("wrong-key-1"));
  }
  ::setenv("HEXAD_TEST_KEY", "sesame", 1);
  Harness bridge({&server}, cfg);
  check_sample(Wish{}, bridge.run({Wish{}}).at(0));
  CHECK(server.seen_key() == "sesame");
  CHECK(!LogLines::all().has("sesame"));
  ::unsetenv("HEXAD_TEST_KEY");
  CHECK_THROWS_WITH_AS(Harness({&server}, cfg), doctest::Contains("the environment has no variable HEXAD_TEST_KEY"),
                       hexad::sdk::Error);
}

TEST_CASE("a storm of faults over three servers leaves every sample as it should be") {
  FakeVllm servers[3] = {FakeVllm({.token_ms = 1}), FakeVllm({.token_ms = 1}), FakeVllm({.token_ms = 1})};
  for (FakeVllm& server : servers) {
    server.inject([n = std::make_shared<std::atomic<int>>(0)](const Json&) {
      const int i = (*n)++;
      if (i % 3 != 0) return Fault{};
      constexpr Fault::Kind kinds[] = {Fault::reset,    Fault::truncated,   Fault::status,  Fault::bad_json,
                                       Fault::positive, Fault::error_event, Fault::no_done, Fault::let_go};
      return Fault{.kind = kinds[i / 3 % 8], .after = i % 7};
    });
  }
  Harness bridge({&servers[0], &servers[1], &servers[2]}, {{"max_attempts", 30}});
  const auto wishes = many(200, 16);
  auto& samples = bridge.run(wishes, 60);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
}

TEST_SUITE_END();
