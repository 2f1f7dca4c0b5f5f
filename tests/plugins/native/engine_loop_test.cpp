// Passes, and what comes between two of them, over an engine without a model.
#include <atomic>
#include <thread>

#include "plugins/native/engine_loop.hpp"
#include "tests/plugins/native/support/stub_engine.hpp"

using namespace native_test;
using namespace hexad::native;

namespace {

struct LoopFixture {
  HostCall call;
  Mailbox mailbox;
  StubExecutor* executor = nullptr;
  EngineLoop loop{stub_engine(true, &executor), Replica(), at::kCPU, mailbox};

  std::vector<uint64_t> run() {
    while (loop.run_once(*call).ran) {
    }
    return ids_out(mailbox);
  }
};

}  // namespace

TEST_CASE_FIXTURE(LoopFixture, "engine loop: a pass takes in what has come, and delivers what ends") {
  CHECK_FALSE(loop.run_once(*call).ran);
  mailbox.submit(sequences_of({4, 5}));
  CHECK(loop.run_once(*call).ran);
  CHECK(ids_out(mailbox).empty());
  CHECK(run() == std::vector<uint64_t>{4, 5});
  CHECK(executor->passes == 3);
  mailbox.submit(sequences_of({6}));
  const uint64_t id[] = {6};
  mailbox.cancel(id);
  CHECK_FALSE(loop.run_once(*call).ran);  // it ends before it has run
  CHECK(ids_out(mailbox) == std::vector<uint64_t>{6});
}

TEST_CASE_FIXTURE(LoopFixture,
                  "engine loop: pause, sleep and missing weights hold passes up, and only the last is told") {
  mailbox.submit(sequences_of({1}));
  loop.exclusively(*call, [](Engine& engine) { engine.pause(); });
  EngineLoop::Pass pass = loop.run_once(*call);
  CHECK_FALSE((pass.ran || pass.lacks_weights));
  loop.exclusively(*call, [](Engine& engine) { engine.resume(), engine.sleep(true); });
  pass = loop.run_once(*call);
  CHECK_FALSE((pass.ran || pass.lacks_weights));
  loop.exclusively(*call, [](Engine& engine) { engine.wake(); });
  pass = loop.run_once(*call);
  CHECK_FALSE(pass.ran);
  CHECK(pass.lacks_weights);
  loop.exclusively(*call, [](Engine& engine) { engine.set_weights({{"w", at::zeros({1})}}, 1); });
  CHECK(run() == std::vector<uint64_t>{1});
  CHECK_FALSE(loop.run_once(*call).lacks_weights);  // nothing to run
}

TEST_CASE_FIXTURE(LoopFixture, "engine loop: what is alone with the engine comes between passes, and a poller wakes") {
  constexpr int kCalls = 200;
  std::atomic<int> alone{0};
  std::atomic<bool> together{false}, done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      HostCall own;
      for (int n = 0; n < kCalls; ++n)
        loop.exclusively(*own, [&](Engine&) {
          if (++alone != 1) together = true;
          const int64_t before = executor->passes;
          std::this_thread::yield();
          if (executor->passes != before) together = true;
          --alone;
        });
    });
  }
  std::thread poller([&] {
    HostCall own;
    for (uint64_t id = 0; !done; ++id) {
      mailbox.submit(sequences_of({id}));
      while (!done && ids_out(mailbox).empty()) loop.run_once(*own);
    }
  });
  for (std::thread& other : others) other.join();
  done = true;
  poller.join();
  CHECK_FALSE(together.load());
  mailbox.look_away();
  loop.exclusively(*call, [](Engine&) {});
  const auto began = std::chrono::steady_clock::now();
  mailbox.wait_until(began + std::chrono::seconds(5));
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(2));
}

TEST_CASE_FIXTURE(LoopFixture, "engine loop: what fails between two passes is told, and passes go on") {
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] {
          loop.exclusively(*call, [](Engine&) { hexad::sdk::fail(HEXAD_FAILED_PRECONDITION, "not now"); });
        }) == "not now");
  mailbox.submit(sequences_of({1}));
  CHECK(run() == std::vector<uint64_t>{1});
}
