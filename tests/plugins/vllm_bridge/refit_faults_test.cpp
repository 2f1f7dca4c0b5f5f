// Updates of weights over disk that servers fail at, miss or break off.
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a server that fails at an update is out until it has loaded the weights in force") {
  FakeVllm good, bad;
  Harness bridge({&good, &bad});
  while (!(LogLines::all().has(good.url()) && LogLines::all().has(bad.url()))) bridge.poll(10);
  bad.refuse("/collective_rpc", 500, 2);
  bridge.update(1, 0.5f);
  const auto wishes = many(12);
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id], HEXAD_FINISH_LENGTH, good.weights());
  CHECK(LogLines::all().has("failed at /collective_rpc: status 500: told to refuse"));
  for (int i = 0; i < 100 && !LogLines::all().has("its last failure"); ++i) bridge.poll(50);
  CHECK(LogLines::all().has("it loads the weights in force (version 1)"));
  CHECK(bad.weights() == good.weights());
  CHECK(!bad.paused());
}

TEST_CASE("an update that no server takes fails, and the weights before stay in force") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  bridge.update(1, 0.5f);
  const uint64_t before = server.weights();
  server.refuse("/reset_prefix_cache", 500, 3);
  CHECK_THROWS_WITH_AS(bridge.update(2, 0.75f), doctest::Contains("weight update: no vLLM server took the weights"),
                       hexad::sdk::Error);
  Wish wish;
  wish.id = 3;
  const auto& sample = bridge.run({wish}).at(3);
  check_sample(wish, sample, HEXAD_FINISH_LENGTH, before);
  CHECK(sample.spans[0].second == 1);
}

TEST_CASE("the only server fails at an update once: it is asked again when it is back") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  server.refuse("/collective_rpc", 500, 1);
  bridge.update(1, 0.5f);
  CHECK(LogLines::all().has("weight update: no vLLM server took the weights of version 1: vLLM server 0"));
  const auto& sample = bridge.run({Wish{.id = 1}}).at(1);
  check_sample(Wish{.id = 1}, sample, HEXAD_FINISH_LENGTH, server.weights());
  CHECK(sample.spans[0].second == 1);
}

TEST_CASE("the only server hangs in an update until its deadline: it is asked again when it is back") {
  FakeVllm server;
  Harness bridge({&server}, {{"control_timeout_s", 0.5}});
  bridge.run({Wish{}});
  server.gate("/collective_rpc");
  std::thread meanwhile([&] {
    CHECK(soon([] { return LogLines::all().has("failed at /collective_rpc: Operation timed out"); }));
    server.open_gate();
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(bridge.run({Wish{.id = 1}}).at(1).spans[0].second == 1);
}

TEST_CASE("the only server dies in an update: whoever comes in its place loads it") {
  auto server = std::make_unique<FakeVllm>();
  const int port = server->port();
  Harness bridge({server.get()}, {{"control_timeout_s", 0.5}});
  bridge.run({Wish{}});
  server->gate("/collective_rpc");
  std::thread meanwhile([&] {
    CHECK(soon([&] { return server->count("POST /collective_rpc") > 0; }));
    server = nullptr;
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(LogLines::all().has("no vLLM server took the weights of version 1: vLLM server 0"));
  const FakeVllm heir({.port = port});
  const auto& sample = bridge.run({Wish{.id = 1}}).at(1);
  CHECK(heir.weights() != 0);
  check_sample(Wish{.id = 1}, sample, HEXAD_FINISH_LENGTH, heir.weights());
  CHECK(sample.spans[0].second == 1);
}

TEST_CASE("a server that broke off the very first update loads the weights in force before it serves again") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  server.refuse("/reset_prefix_cache", 500, 3);
  CHECK_THROWS_WITH_AS(bridge.update(1, 0.5f), doctest::Contains("no vLLM server took the weights"), hexad::sdk::Error);
  const auto& sample = bridge.run({Wish{.id = 1}}).at(1);
  CHECK(server.weights() == weights_in(bridge.model().path()));
  check_sample(Wish{.id = 1}, sample, HEXAD_FINISH_LENGTH, server.weights());
  CHECK(sample.spans[0].second == 0);
}

TEST_CASE("a server that comes up while others load an update loads it before it takes requests") {
  FakeVllm first, late;
  late.set_healthy(false);
  Harness bridge({&first, &late});
  bridge.run({Wish{}});
  first.gate("/collective_rpc");
  std::thread meanwhile([&] {
    soon([&] { return first.count("POST /collective_rpc") > 0; });
    late.set_healthy(true);
    soon([&] { return LogLines::all().has(takes_requests(late)); });
    first.open_gate();
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(LogLines::all().has(takes_requests(late)));
  CHECK(soon([&] { return late.weights() == first.weights(); }, 300));
  auto wishes = many(12);
  for (Wish& wish : wishes) wish.id += 10;
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id], HEXAD_FINISH_LENGTH, first.weights());
}

TEST_CASE("a server that starts again after its reload, before the update's end, loads once more") {
  auto dies = std::make_unique<FakeVllm>(FakeVllm::Options{.token_ms = 3});
  FakeVllm slow({.token_ms = 3});
  Harness bridge({dies.get(), &slow});
  while (!(LogLines::all().has(takes_requests(*dies)) && LogLines::all().has(takes_requests(slow)))) bridge.poll(10);
  bridge.submit(many(16, 40));
  while (dies->running() < 4) bridge.poll(5);
  slow.gate("/collective_rpc");
  std::thread meanwhile([&] {
    soon([&] { return slow.count("POST /collective_rpc") > 0 && dies->weights() != 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its answer is on its way
    const int port = dies->port();
    LogLines::all().clear();
    dies = nullptr;
    dies = std::make_unique<FakeVllm>(FakeVllm::Options{.port = port, .token_ms = 3});
    soon([&] { return LogLines::all().has(takes_requests(*dies)); });
    slow.open_gate();
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(LogLines::all().has(takes_requests(*dies)));
  CHECK(soon([&] { return dies->weights() == slow.weights(); }, 300));
  bridge.finish();
  auto wishes = many(12);
  for (Wish& wish : wishes) wish.id += 100;
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id], HEXAD_FINISH_LENGTH, slow.weights());
}

TEST_CASE("an update that throws half way holds nothing back") {
  auto taken = std::make_unique<FakeVllm>();
  const int port = taken->port();
  const ModelDir empty(/*weights=*/false);
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "sleep 1000"}}, Json::object(),
                 {{"model_name", empty.path().string()}, {"port_range_low", port}, {"port_range_high", port}});
  CHECK_THROWS_WITH_AS(bridge.update(1, 0.5f), doctest::Contains("are taken"), hexad::sdk::Error);
  taken = nullptr;
  bridge.update(2, 0.5f);
  const FakeVllm server({.port = port});  // in the place of the child, which does not serve
  CHECK(bridge.run({Wish{}}).at(0).tokens.size() == 12);
}

TEST_SUITE_END();
