// Updates of weights over disk, and the versions of tokens.
#include "tests/plugins/sglang_bridge/support/harness.hpp"

using namespace sglang_test;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("an update pauses, loads under a name, flushes, continues, in this order, on every SGLang server") {
  FakeSglang first, second;
  Harness bridge({&first, &second});
  bridge.run(many(4));
  while (!(LogLines::all().has(first.url()) && LogLines::all().has(second.url()))) bridge.poll(10);
  bridge.update(1, 0.5f);
  for (const FakeSglang* server : {&first, &second}) {
    const std::vector<std::string> calls = server->since_pause();
    REQUIRE(calls.size() >= 4);
    CHECK(calls[0] == R"(POST /pause_generation {"mode":"retract"})");
    CHECK(calls[1].starts_with(R"(POST /update_weights_from_disk {"model_path":)"));
    CHECK(calls[1].ends_with(R"("load_format":"auto","flush_cache":false,"weight_version":"1"})"));
    CHECK(calls[2] == "POST /flush_cache {}");
    CHECK(calls[3] == "POST /continue_generation {}");
    CHECK(!server->paused());
    CHECK(server->weights() != 0);
  }
  CHECK(first.weights() == second.weights());
  const auto& sample = bridge.run({Wish{.id = 9}}).at(9);
  check_sample(Wish{.id = 9}, sample, HEXAD_FINISH_LENGTH, first.weights());
  CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 1}});
  const auto bodies = first.generations();
  if (!bodies.empty()) CHECK(!bodies.front().at("extra_key").get<std::string>().empty());
}

TEST_CASE("a sample that ran over an update knows the version of each token, in each mode of pausing") {
  for (const char* mode : {"retract", "in_place", "abort"}) {
    CAPTURE(mode);
    FakeSglang server({.token_ms = 4});
    Harness bridge({&server}, {{"sglang_server_config", {{"pause_generation_mode", mode}}}, {"stream_interval", 7}});
    Wish wish;
    wish.max_new_tokens = 120;
    bridge.submit({wish});
    while (server.running() == 0) bridge.poll(5);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    bridge.update(5, 0.25f);
    CHECK(server.since_pause().front() == "POST /pause_generation " + Json{{"mode", mode}}.dump());
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
    const auto bodies = server.generations();
    CHECK(bodies.size() == (std::string(mode) == "abort" ? 2 : 1));  // else the server kept it
    if (bodies.size() == 2) CHECK(bodies[0].at("extra_key") != bodies[1].at("extra_key"));
  }
}

TEST_CASE("an update that a server refuses names the weight that it names, and those before stay in force") {
  FakeSglang server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  server.refuse("/update_weights_from_disk", 400,
                R"({"success":false,"message":"Failed to update model.layers.0.mlp.down_proj.weight: shape","n":0})",
                1'000'000, R"("weight_version":"1")");
  std::string error;
  try {
    bridge.update(1, 1.0f);
  } catch (const hexad::sdk::Error& refused) {
    error = refused.what();
  }
  CHECK_MESSAGE(error.find("weight update: no SGLang server took the weights:") != std::string::npos, error);
  CHECK(error.find("status 400: Failed to update model.layers.0.mlp.down_proj.weight: shape") != std::string::npos);
  CHECK(error.find("those before stay in force") != std::string::npos);
}

TEST_CASE("a cache that is not flushed fails a server, unless requests held it and others have another salt") {
  FakeSglang held;
  Harness bridge({&held});
  bridge.run({Wish{}});
  held.refuse("/flush_cache", 400, "Flush cache failed.\n");
  bridge.update(1, 1.0f);
  CHECK(!LogLines::all().has("failed at /flush_cache"));
  held.refuse("/flush_cache", 500, "Internal Server Error", 1);
  bridge.update(2, 2.0f);
  CHECK(LogLines::all().has("failed at /flush_cache after a weight update: status 500: Internal Server Error"));
}

TEST_CASE("weights that a server is met with are named, and a server that was left paused goes on") {
  FakeSglang server;
  server.set_paused(true);
  Harness bridge({&server});
  const auto& sample = bridge.run({Wish{}}).at(0);
  CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 0}});
  CHECK(server.count(R"(POST /update_weight_version {"new_version":"0","abort_all_requests":false})") == 1);
  CHECK(server.count("POST /continue_generation") >= 1);
}

TEST_CASE("a server with a memory saver pauses, gives memory back, and takes it again before it goes on") {
  FakeSglang server({.memory_saver = true}), plain;
  Harness bridge({&server, &plain});
  bridge.run(many(4));
  while (!(LogLines::all().has(server.url()) && LogLines::all().has(plain.url()))) bridge.poll(10);
  bridge->sleep(bridge.service(), 1);
  CHECK(server.paused());
  CHECK(plain.count("POST /release_memory_occupation") == 0);
  bridge->wake(bridge.service());
  const std::vector<std::string> wanted = {
      R"(POST /pause_generation {"mode":"abort"})", R"(POST /release_memory_occupation {"tags":["kv_cache"]})",
      R"(POST /resume_memory_occupation {"tags":["kv_cache"]})", "POST /continue_generation {}"};
  std::vector<std::string> calls = server.since_pause();
  calls.resize(std::min(calls.size(), wanted.size()));
  CHECK(calls == wanted);
  bridge->sleep(bridge.service(), 2);
  CHECK(server.count(R"(POST /release_memory_occupation {"tags":["kv_cache","weights"]})") == 1);
  bridge->wake(bridge.service());
  bridge.submit(many(4));
  bridge.update(3, 3.0f);
  bridge.finish();
}

TEST_CASE("a cancelled request is aborted on its server by name") {
  FakeSglang server({.token_ms = 5});
  Harness bridge({&server});
  bridge.submit({Wish{.id = 3, .max_new_tokens = 1000}});
  while (server.running() == 0) bridge.poll(5);
  const uint64_t id = 3;
  bridge->cancel(bridge.service(), {&id, 1});
  CHECK(bridge.finish().at(3).finish == HEXAD_FINISH_ABORT);
  const Json name = server.generations().front().at("rid");
  CHECK(soon([&] { return server.count("POST /abort_request " + Json{{"rid", name}}.dump()) == 1; }));
  CHECK(soon([&] { return server.running() == 0; }));
}

TEST_SUITE_END();
