// Servers that go on sending what brings nothing.
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

namespace {

// For the first request that comes.
FakeVllm::Inject once(Fault fault) {
  return [fault, left = std::make_shared<std::atomic<int>>(1)](const Json&) {
    return left->fetch_sub(1) > 0 ? fault : Fault{};
  };
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // servers that must answer in time

TEST_CASE("bytes that bring no token keep no request for ever, though its server goes on with others") {
  for (const char* text : {": ping\n\n", "data: {\"choices\": []}\n\n"}) {
    CAPTURE(text);
    FakeVllm server({.token_ms = 20});
    Harness bridge({&server}, {{"max_attempts", 2}, {"stall_timeout_s", 0.4}});
    server.inject([text](const Json& body) {
      return body.at("token_ids")[0] == 66 ? Fault{.kind = Fault::drip, .text = text} : Fault{};
    });
    auto wishes = many(2, 200);
    wishes[1].prompt = {66};
    bridge.submit(wishes);
    for (int i = 0; i < 200 && bridge.samples.empty(); ++i) bridge.poll(100);
    CHECK_MESSAGE(bridge.samples[1].finish == HEXAD_FINISH_ERROR, LogLines::all().text());
    CHECK(bridge.samples[1].error.find("bytes, and no token for ") != std::string::npos);
    check_sample(wishes[0], bridge.finish()[0]);
  }
}

TEST_CASE("a sample whose stream turns into comments goes on from its tokens") {
  constexpr int kAll = 12;  // a sample that has all its tokens ends as it should, whichever deadline passes first
  for (const int after : {0, 4, kAll}) {
    CAPTURE(after);
    FakeVllm server;
    Harness bridge({&server}, {{"stall_timeout_s", 0.4}});
    server.inject(once({.kind = Fault::drip, .after = after}));
    check_sample(Wish{}, bridge.run({Wish{}}, 15).at(0));
    if (after < kAll) CHECK(LogLines::all().has("no token for "));
  }
}

TEST_CASE("a request may wait for long in the queue of a server that goes on with others, however its answer begins") {
  FakeVllm server({.token_ms = 20});
  Harness bridge({&server}, {{"max_attempts", 1}, {"stall_timeout_s", 0.4}});
  server.inject(
      [](const Json& body) { return body.at("token_ids")[0] == 66 ? Fault{.kind = Fault::late, .ms = 600} : Fault{}; });
  auto wishes = many(2, 60);
  wishes[1].prompt = {66};
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  CHECK_FALSE(LogLines::all().has("no token for"));
}

TEST_CASE("the body of an error that has no end is cut") {
  FakeVllm server;
  Harness bridge({&server}, {{"max_attempts", 1}, {"stall_timeout_s", 10}});
  static const std::string text(1000, 'x');
  server.inject(once({.kind = Fault::drip_status, .code = 503, .text = text.c_str()}));
  const Sample& sample = bridge.run({Wish{}}, 5).at(0);
  CHECK(sample.finish == HEXAD_FINISH_ERROR);
  CHECK(sample.error.starts_with("1 attempts in a row brought no token; the last server answered with status 503: xx"));
}

TEST_SUITE_END();
