// What a confined plugin does to itself, it does to itself alone.
#include <chrono>

#include "tests/plugin/confined/confined.hpp"

using namespace confined_test;

namespace {

using Clock = std::chrono::steady_clock;

struct Fault {
  std::string first, second;  // two calls after each other
  double seconds = 0;         // of the second
};

// A process of its own that fails as `mode` says, with a deadline of so many seconds.
Fault fail_with(const std::string& mode, double deadline_s = 20) {
  const LoadedPlugin& plugin = plugins().load(Kind::loss, kLoss, true);
  LossPlugin loss(plugin, {}, section({{"mode", mode}}));
  CallContext context;
  context.step = 8;
  context.deadline_ns =
      std::chrono::nanoseconds(Clock::now().time_since_epoch()).count() + static_cast<int64_t>(deadline_s * 1e9);
  Fault fault;
  fault.first = error_of([&] { LossCall().run(loss, context); });
  const auto began = Clock::now();
  fault.second = error_of([&] { LossCall().run(loss, context); });
  fault.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const std::string who = plugin.label() + ": compute at step 8: UNAVAILABLE: its own process (pid ";
  CHECK_MESSAGE(fault.first.starts_with(who), fault.first);
  CHECK(fault.second == fault.first);
  CHECK(fault.seconds < 10);  // it does not wait again
  return fault;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a crash is an error that names plugin, function, signal and last words") {
  const Fault fault = fail_with("crash");
  CHECK(contains(fault.first, "was killed by signal 11 (Segmentation fault) during compute. It last wrote:\n"));
  CHECK(contains(fault.first, "about to crash\nhexad: crashed in loss 'own_"));
  CHECK(contains(fault.first, ": compute at step 8"));
}

TEST_CASE("a plugin that ends its process says so") {
  const std::string exited = fail_with("exit").first;  // exit(0)
  CHECK_MESSAGE(contains(exited, "ended by itself with exit code 3 during compute"), exited);
  CHECK_MESSAGE(contains(exited, "hexad: the program was ended by exit() in loss '"), exited);
}

TEST_CASE("a plugin that hangs is ended at its deadline") {
  const auto began = Clock::now();
  CHECK(contains(fail_with("hang", 0.2).first, "did not answer within 1.2 s and was ended during compute"));
  CHECK(std::chrono::duration<double>(Clock::now() - began).count() < 8);
}

TEST_CASE("a call without a deadline has a limit") {
  const LoadedPlugin& plugin = plugins().load(Kind::loss, kLoss, true, "", /*limit_s=*/0.7);
  LossPlugin loss(plugin, {}, section({{"mode", "hang"}}));
  CHECK(contains(error_of([&] { LossCall().run(loss); }), "did not answer within 0.7 s and was ended during compute"));
}

TEST_CASE("bytes that are no answer end the process, not the engine") {
  CHECK(contains(fail_with("garbage").first, "sent bytes that are no frame and was ended during compute"));
}

TEST_CASE("a forged message of any kind is an error") {
  for (int frame = 1; frame <= 9; ++frame) {
    CAPTURE(frame);
    const LoadedPlugin& plugin = plugins().load(Kind::loss, kLoss, true, "", /*limit_s=*/1);
    LossPlugin loss(plugin, {}, section({{"mode", "forge"}, {"frame", frame}}));
    const std::string text = error_of([&] { LossCall().run(loss); });
    CHECK_MESSAGE(contains(text, "UNAVAILABLE: its own process (pid "), text);
    CHECK_MESSAGE(contains(text, " and was ended during compute"), text);
  }
}

TEST_CASE("a plugin that closes its connection is lost") {
  CHECK(contains(fail_with("hang up").first, "closed its connection to the engine and was ended during compute"));
}

TEST_CASE("a crash in create is told, and so are errors that are no crash") {
  const LoadedPlugin& plugin = plugins().load(Kind::loss, kLoss, true);
  for (const auto& [mode, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"throw", "compute at step 0: INTERNAL: threw a C++ exception across the ABI: a bug: the plugin is faulty"},
           {"silent", "compute at step 0: code 77: it failed without saying why"}}) {
    LossPlugin loss(plugin, {}, section({{"mode", mode}}));
    const std::string text = error_of([&] { LossCall().run(loss); });
    CHECK_MESSAGE(contains(text, wanted), text);
  }
  LossPlugin fine(plugin, {}, section(Json::object()));
  LossCall().run(fine);
  const std::string text = error_of([&] { LossPlugin(plugin, {}, section({{"mode", "crash in create"}})); });
  CHECK_MESSAGE(contains(text, "create at step 0: UNAVAILABLE: its own process (pid "), text);
  CHECK_MESSAGE(contains(text, "was killed by signal 11 (Segmentation fault) during create"), text);
  CHECK(contains(error_of([&] { LossCall().run(fine); }), "during create"));
}

TEST_SUITE_END();
