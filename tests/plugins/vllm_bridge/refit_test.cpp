// Updates of weights over disk, while no server fails.
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("an update pauses, loads, resets, resumes, in this order, on every server") {
  FakeVllm first, second;
  Harness bridge({&first, &second});
  bridge.run(many(4));
  while (!(LogLines::all().has(first.url()) && LogLines::all().has(second.url()))) bridge.poll(10);
  bridge.update(1, 0.5f);
  for (const FakeVllm* server : {&first, &second}) {
    CHECK(server->came_in_order(
        {"POST /pause?mode=keep", "POST /collective_rpc", "POST /reset_prefix_cache", "POST /resume"}));
    CHECK(!server->paused());
    CHECK(server->weights() != 0);
  }
  CHECK(first.weights() == second.weights());
  Wish wish;
  wish.id = 9;
  const auto& sample = bridge.run({wish}).at(9);
  check_sample(wish, sample, HEXAD_FINISH_LENGTH, first.weights());
  CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 1}});
}

TEST_CASE("samples that run over an update name the versions of their tokens") {
  FakeVllm server({.token_ms = 4});
  Harness bridge({&server});
  Wish wish;
  wish.max_new_tokens = 120;
  bridge.submit({wish});
  while (server.running() == 0) bridge.poll(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  bridge.update(5, 0.25f);
  const auto& sample = bridge.finish().at(0);
  REQUIRE(sample.spans.size() == 2);
  CHECK(sample.spans[0] == std::pair<int64_t, int64_t>{0, 0});
  CHECK(sample.spans[1].second == 5);
  std::vector<int32_t> tokens = wish.prompt;
  for (size_t i = 0; i < sample.tokens.size(); ++i) {
    const bool old = static_cast<int64_t>(i) < sample.spans[1].first;
    CHECK(sample.tokens[i] == next_token(tokens, old ? 0 : server.weights()));
    tokens.push_back(sample.tokens[i]);
  }
  CHECK(server.generations().size() == 1);  // the server kept it
}

TEST_CASE("an update that is dropped or refused changes nothing") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  bridge.update(1, 1.0f, /*commit=*/false);
  bridge->update_begin(bridge.service(), 2);
  bridge.bucket("w", 1);
  CHECK_THROWS_WITH_AS(bridge.bucket("w", 1), doctest::Contains("weight update: w came twice"), hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(bridge->update_end(bridge.service(), true),
                       doctest::Contains("a bucket of it was refused: weight update: w came twice"), hexad::sdk::Error);
  bridge->update_begin(bridge.service(), 3);
  CHECK_THROWS_WITH_AS(bridge->update_end(bridge.service(), true), doctest::Contains("no weight came before its end"),
                       hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(bridge->update_end(bridge.service(), true), doctest::Contains("update_end without update_begin"),
                       hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(bridge.bucket("w", 1), doctest::Contains("update_bucket without update_begin"),
                       hexad::sdk::Error);
  CHECK(server.count("POST /collective_rpc") == 0);
  CHECK(bridge.run({Wish{.id = 2}}).at(2).spans[0].second == 0);
}

TEST_CASE("a server without development endpoints is not refitted but told of") {
  FakeVllm server({.dev_mode = false});
  Harness bridge({&server});
  bridge.run({Wish{}});
  CHECK_THROWS_WITH_AS(
      bridge->update_begin(bridge.service(), 1),
      doctest::Contains("has no development endpoints, through which weights are loaded. Start it with "
                        "VLLM_SERVER_DEV_MODE=1"),
      hexad::sdk::Error);
}

TEST_CASE("other transports and router replay are refused with a word") {
  FakeVllm server;
  CHECK_THROWS_WITH_AS(Harness({&server}, Json::object(), {{"refit_transport", "nccl_reshard"}}),
                       doctest::Contains("got 'nccl_reshard'. Weights reach vLLM by disk, ipc or nccl"),
                       hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(Harness({&server}, Json::object(), {{"return_routed_experts", true}}),
                       doctest::Contains("the backend wants routed_experts"), hexad::sdk::Error);
}

TEST_CASE("an answer to a reset that makes no sense does not stop the servers") {
  FakeVllm server({.reset_success = "yes"});
  Harness bridge({&server});
  bridge.run({Wish{}});
  bridge.update(1, 0.5f);
  CHECK(!server.paused());
  check_sample(Wish{.id = 1}, bridge.run({Wish{.id = 1}}).at(1), HEXAD_FINISH_LENGTH, server.weights());
}

TEST_SUITE_END();
