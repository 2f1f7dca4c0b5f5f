// Pause, sleep, cancel, and all of it from several threads at once.
#include <atomic>
#include <thread>

#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;

namespace {

struct Fixture {
  TinyModel model{"mistral"};
  Harness generator{{{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 0.0002}, {"kv_block_size", 4}}}}};
  std::vector<Ask> asks;
  std::map<uint64_t, Answer> expected;

  Fixture() {
    for (uint64_t id = 0; id < 6; ++id) {
      asks.push_back({.id = id, .prompt = random_prompt(id / 2, 9), .max_new_tokens = 25, .group = id / 2, .seed = id});
    }
    expected = generator.run(asks);
    generator.answers.clear();
  }
  void passes(int count) {
    while (count-- > 0) generator.poll(0);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "pause stops everything where it is, and resume goes on") {
  generator.submit(asks);
  passes(5);
  generator->pause(generator.service());
  passes(50);
  CHECK(generator.poll(60) == 0);
  CHECK(generator.answers.empty());
  generator->resume(generator.service());
  CHECK((generator.run() == expected));
}

TEST_CASE_FIXTURE(Fixture, "sleep changes no sample: keys and values are computed again") {
  for (const int32_t level : {1, 2}) {
    CAPTURE(level);
    generator.submit(asks);
    passes(8);
    generator->sleep(generator.service(), level);
    passes(5);
    CHECK(generator.answers.empty());
    if (level == 2) generator.update(model.weights, 0);  // arrives in its sleep
    generator->wake(generator.service());
    CHECK((generator.run() == expected));
    generator.answers.clear();
  }
  CHECK(refusal(HEXAD_INVALID_ARGUMENT, [&] { generator->sleep(generator.service(), 3); }) ==
        "sleep: got level 3, wanted 1 (free the KV cache) or 2 (free the weights too)");
}

TEST_CASE_FIXTURE(Fixture, "a cancelled sample ends with what it has, and its id is free again") {
  generator.submit(asks);
  passes(8);
  const uint64_t some[] = {2, 4, 77};
  generator->cancel(generator.service(), some);
  generator->cancel(generator.service(), some);
  auto answers = generator.run();
  for (const uint64_t id : {2, 4}) {
    Answer& answer = answers.at(id);
    CHECK(answer.finish == HEXAD_FINISH_ABORT);
    REQUIRE((answer.tokens.size() > 0 && answer.tokens.size() < 25));
    CHECK(std::equal(answer.tokens.begin(), answer.tokens.end(), expected.at(id).tokens.begin()));
    answer = generator.run({asks[id]}).at(id);
  }
  CHECK((answers == expected));
}

TEST_CASE_FIXTURE(Fixture, "an event list of one hands events out one by one, and a cancelled call ends poll") {
  generator.submit(asks);
  std::vector<const hexad_completion*> events(1);
  std::map<uint64_t, int> seen;
  while (seen.size() < asks.size()) {
    const int64_t count = generator->poll(generator.service(), events, 1000);
    REQUIRE(count == 1);
    ++seen[events[0]->id];
    CHECK(events[0]->count == 25);
    generator->release(events);
  }
  CHECK(generator->poll(generator.service(), {}, 1000) == 0);
  const std::atomic<bool> cancelled{true};
  generator.context().cancelled = &cancelled;
  CHECK(refusal(HEXAD_CANCELLED, [&] { generator->poll(generator.service(), events, 100000); }) ==
        "poll was cancelled");
}

TEST_CASE_FIXTURE(Fixture, "requests, cancels and updates from other threads while one polls") {
  constexpr uint64_t kRequests = 120;
  std::atomic<uint64_t> ended{0}, errors{0};
  std::thread poller([&] {
    std::vector<const hexad_completion*> events(7);
    while (ended < kRequests) {
      const int64_t count = generator->poll(generator.service(), events, 20);
      for (int64_t i = 0; i < count; ++i) {
        if (events[i]->finish == HEXAD_FINISH_NONE) continue;
        errors += events[i]->finish == HEXAD_FINISH_ERROR;
        ++ended;
      }
      generator->release({events.data(), static_cast<size_t>(count)});
    }
  });
  std::thread updater([&] {
    for (int version = 1; ended < kRequests; ++version) {
      generator.update(model.weights, version);
      if (version % 3 == 0) generator->sleep(generator.service(), 1), generator->wake(generator.service());
      if (version % 5 == 0) generator->flush_cache(generator.service());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  for (uint64_t id = 0; id < kRequests; ++id) {
    Ask ask = asks[id % asks.size()];
    ask.id = id, ask.flags |= id % 2 ? HEXAD_REQUEST_STREAM : 0;
    generator.submit({ask});
    if (id % 7 == 3) {
      const uint64_t victim[] = {id - 2};
      generator->cancel(generator.service(), victim);
    }
  }
  poller.join();
  updater.join();
  CHECK(errors == 0);
}
