// Pause and sleep.
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a pause keeps everything, with and without development endpoints; sleep too") {
  for (const bool dev_mode : {true, false}) {
    for (const bool sleeps : {false, true}) {
      CAPTURE(dev_mode);
      CAPTURE(sleeps);
      FakeVllm server({.dev_mode = dev_mode, .token_ms = 3});
      Harness bridge({&server});
      const auto wishes = many(6, 40);
      bridge.submit(wishes);
      while (server.running() < 6) bridge.poll(5);
      sleeps ? bridge->sleep(bridge.service(), 1) : bridge->pause(bridge.service());
      bridge.submit({Wish{.id = 100}});
      const auto early = bridge.samples.size();
      for (int i = 0; i < 10; ++i) bridge.poll(30);
      CHECK(bridge.samples.size() == early);
      sleeps ? bridge->wake(bridge.service()) : bridge->resume(bridge.service());
      auto& samples = bridge.finish();
      for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
      check_sample(Wish{.id = 100}, samples[100]);
    }
  }
}

TEST_CASE("a server that somebody left paused is resumed before it gets requests") {
  FakeVllm server;
  {
    Harness bridge({&server});
    bridge.run({Wish{}});
    bridge->pause(bridge.service());
  }
  CHECK(server.paused());
  Harness bridge({&server});
  check_sample(Wish{}, bridge.run({Wish{}}).at(0));
}

TEST_CASE("after sleep without weights requests wait for an update") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  CHECK_THROWS_WITH_AS(bridge->sleep(bridge.service(), 3), doctest::Contains("sleep: got level 3"), hexad::sdk::Error);
  bridge->sleep(bridge.service(), 2);
  bridge->wake(bridge.service());
  bridge.submit({Wish{.id = 1}});
  for (int i = 0; i < 5; ++i) bridge.poll(30);
  CHECK(bridge.samples.size() == 1);
  bridge.update(1, 2.0f);
  check_sample(Wish{.id = 1}, bridge.finish().at(1), HEXAD_FINISH_LENGTH, server.weights());
}

TEST_CASE("a pause, a sleep without weights and an update may overlap") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  bridge->pause(bridge.service());
  bridge->sleep(bridge.service(), 2);
  bridge->wake(bridge.service());
  bridge.update(1, 2.0f);
  bridge.submit({Wish{.id = 1}});
  for (int i = 0; i < 5; ++i) bridge.poll(30);
  CHECK(bridge.samples.size() == 1);
  bridge->resume(bridge.service());
  check_sample(Wish{.id = 1}, bridge.finish().at(1), HEXAD_FINISH_LENGTH, server.weights());

  bridge->sleep(bridge.service(), 2);
  bridge->wake(bridge.service());
  bridge->sleep(bridge.service(), 1);  // still without weights
  bridge->wake(bridge.service());
  bridge.submit({Wish{.id = 2}});
  for (int i = 0; i < 5; ++i) bridge.poll(30);
  CHECK(bridge.samples.size() == 2);
  bridge.update(2, 3.0f);
  check_sample(Wish{.id = 2}, bridge.finish().at(2), HEXAD_FINISH_LENGTH, server.weights());
}

TEST_SUITE_END();
