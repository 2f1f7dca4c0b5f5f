// Updates of weights by gloo, with servers that join the groups and keep what they are sent; and servers that fail.
#include <signal.h>

#include <cstdlib>
#include <future>

#include "tests/plugins/sglang_bridge/support/weights.hpp"

using namespace sglang_test;

namespace {

// c10d's flight recorder is one for the process, and not made for groups that several threads use at once.
[[maybe_unused]] const bool kNoRecorder = ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1) == 0;

const Json kGloo = {{"refit_transport", "gloo"}};

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("weights by gloo arrive bit for bit on every rank of every SGLang server, under the name of their version") {
  FakeSglang first({.tp_size = 2}), second;
  Harness bridge({&first, &second}, Json::object(), kGloo);
  await(bridge, {&first, &second});
  const Weights weights = some_weights(1);
  bridge->update_begin(bridge.service(), 1);
  CHECK(first.paused());
  bridge->update_bucket(bridge.service(), List(weights).list());
  Weights more = {{"lm_head.weight", {"float32", {1}, "abcd"}}};
  bridge->update_bucket(bridge.service(), List(more).list());
  bridge->update_end(bridge.service(), true);
  more.insert(weights.begin(), weights.end());
  for (FakeSglang* server : {&first, &second}) {
    CHECK(server->groups().weights() == more);
    CHECK(!server->paused());
    const std::vector<std::string> calls = server->since_pause();
    REQUIRE(calls.size() >= 8);
    CHECK(calls[0] == R"(POST /pause_generation {"mode":"retract"})");
    CHECK(calls[1].starts_with(R"(POST /init_weights_update_group {"master_address":"127.0.0.1","master_port":)"));
    CHECK(has(calls[1], R"("rank_offset":1,"world_size":)" + std::to_string(server == &first ? 3 : 2)));
    CHECK(calls[1].ends_with(R"("backend":"gloo"})"));
    CHECK(calls[2] == "POST /begin_weight_update {}");
    // Larger elements first: SGLang refuses a bucket in which one is not aligned.
    CHECK(has(calls[3], R"("dtypes":["float32","float32","float32","bfloat16","float16","float8_e4m3fn"])"));
    CHECK(has(calls[3], R"("flush_cache":false,"weight_version":"1","load_format":"flattened_bucket"})"));
    CHECK(calls[5] == "POST /end_weight_update {}");
    CHECK(calls[6] == "POST /flush_cache {}");
    CHECK(calls[7] == "POST /continue_generation {}");
  }
  CHECK(LogLines::all().has("weights reach the SGLang servers by gloo"));
  const auto& sample = bridge.run({Wish{.id = 9}}).at(9);
  check_sample(Wish{.id = 9}, sample, HEXAD_FINISH_LENGTH, first.weights());
  CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 1}});
  const Weights others = some_weights(2);
  update(bridge, 2, others);
  CHECK(second.groups().weights().at("model.norm.weight") == others.at("model.norm.weight"));
  CHECK(second.count("POST /init_weights_update_group") == 1);  // of the process, not of the update
  bridge.close();
  CHECK(first.groups().groups() == 0);
  CHECK(second.count("POST /destroy_weights_update_group") == 1);
}

TEST_CASE("a sample that ran over an update by gloo knows the version of each token, in each mode of pausing") {
  for (const char* mode : {"retract", "in_place", "abort"}) {
    CAPTURE(mode);
    FakeSglang server({.token_ms = 4});
    Harness bridge({&server}, {{"sglang_server_config", {{"pause_generation_mode", mode}}}, {"stream_interval", 7}},
                   kGloo);
    Wish wish;
    wish.max_new_tokens = 120;
    bridge.submit({wish});
    while (server.running() == 0) bridge.poll(5);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    update(bridge, 5, some_weights(3));
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
  }
}

TEST_CASE("a server that refuses a bucket ends its broadcast at once, by names and its words; the next group is new") {
  FakeSglang good, bad;
  Harness bridge({&good, &bad}, Json::object(), kGloo);
  await(bridge, {&good, &bad});
  const Weights weights = some_weights(1);
  bad.refuse("/update_weights_from_distributed", 400, R"({"success":false,"message":"there is no room"})", 1);
  CHECK(seconds_of([&] { update(bridge, 1, weights); }) < 10);
  CHECK(good.groups().weights() == weights);
  CHECK(bad.groups().weights().empty());
  CHECK(bad.groups().groups() == 0);
  CHECK(
      LogLines::all().has("did not take model.bias and 5 weights more up to model.layers.1.scale: weight update by "
                          "gloo: the broadcast did not end: the server says status 400: there is no room"));
  CHECK(soon([&] { return LogLines::all().has(bad.url() + "): it waits for the next weight update: of version 1"); }));
  const Weights others = some_weights(2);
  update(bridge, 2, others);
  CHECK(bad.groups().weights() == others);
  CHECK(bad.count("POST /init_weights_update_group") == 2);
  CHECK(good.count("POST /init_weights_update_group") == 1);
  CHECK(bad.weights() == good.weights());
}

TEST_CASE("a weight that a server finds wrong once it is there is named with the server's words") {
  FakeSglang server;
  Harness bridge({&server}, Json::object(), kGloo);
  await(bridge, {&server});
  for (const auto& [dtype, shape] :
       std::vector<std::pair<std::string, std::vector<int64_t>>>{{"bfloat16", {5, 4}}, {"float32", {5, 3}}}) {
    server.groups().expect({{"model.layers.0.mlp.down_proj.weight", {dtype, shape, ""}}});
    const std::string error = error_of(bridge, 1, some_weights(1));
    CHECK(has(error, "weight update: no SGLang server took the weights: SGLang server 0"));
    CHECK(has(error,
              "did not take model.bias and 5 weights more up to model.layers.1.scale: "
              "/update_weights_from_distributed: status 400: Failed to update parameter online: "
              "model.layers.0.mlp.down_proj.weight has another shape or type"));
    CHECK(soon([&] { return server.groups().groups() == 0; }));
  }
  server.groups().expect({});
  CHECK(soon([&] { return LogLines::all().has("it loads the weights in force"); }));
  update(bridge, 2, some_weights(2));
  CHECK(server.groups().weights() == some_weights(2));
}

TEST_CASE("a server that never joins, and one that never takes part, are given up after control_timeout_s") {
  for (const auto& [path, part] : std::vector<std::pair<std::string, std::string>>{
           {"/init_weights_update_group", "did not take weights: weight update by gloo: the group was not made: "},
           {"/update_weights_from_distributed",
            "did not take model.bias and 5 weights more up to model.layers.1.scale: weight update by gloo: the "
            "broadcast "}}) {
    CAPTURE(path);
    FakeSglang good, bad;
    Harness bridge({&good, &bad}, {{"control_timeout_s", 3}}, kGloo);
    await(bridge, {&good, &bad});
    bad.hang(path);
    CHECK(seconds_of([&] { update(bridge, 1, some_weights(1)); }) < 15);
    CHECK(good.groups().weights() == some_weights(1));
    CHECK_MESSAGE(LogLines::all().has(part), LogLines::all().text());
    bad.hang("");
    CHECK(
        soon([&] { return LogLines::all().has(bad.url() + "): it waits for the next weight update: of version 1"); }));
    update(bridge, 2, some_weights(2));
    CHECK(bad.groups().weights() == some_weights(2));
  }
}

TEST_CASE("a server that will not make a group is told of, and others take the weights") {
  FakeSglang good, bad, parallel({.dp_size = 2});
  Harness bridge({&good, &bad, &parallel}, Json::object(), kGloo);
  await(bridge, {&good, &bad, &parallel});
  bad.refuse("/init_weights_update_group", 400, R"({"success":false,"message":"Failed to initialize: no."})");
  CHECK(seconds_of([&] { update(bridge, 1, some_weights(1)); }) < 10);
  CHECK(good.groups().weights() == some_weights(1));
  CHECK(
      LogLines::all().has("the others did not join: the server says status 400: "
                          "Failed to initialize: no."));
  CHECK(
      LogLines::all().has("did not take weights: its dp_size is 2: wanted 1, as SGLang's groups for weights have "
                          "ranks of tensor parallelism alone. Set policy.generation.refit_transport to disk"));
}

TEST_CASE("an update that a trainer before this one left open on an SGLang server is ended first") {
  FakeSglang server;
  CHECK(server.groups().answer("/begin_weight_update", "{}")->status == 200);
  Harness bridge({&server}, Json::object(), kGloo);
  await(bridge, {&server});
  update(bridge, 1, some_weights(1));
  CHECK(server.groups().weights() == some_weights(1));
}

TEST_CASE("a server that is killed in the middle of a broadcast harms no other, and takes the next when it is back") {
  const std::string program = std::string(std::getenv("HEXAD_BUILD_DIR")) + "/lib/hexad/plugins/sglang_stand_in";
  const ModelDir notes;
  const std::filesystem::path pids = notes.path() / "pids";
  Harness bridge(
      Harness::Spawn{{"/bin/sh", "-c", "echo $$ >> " + pids.string() + "; exec " + program + " \"$@\"", "sglang"}},
      {{"num_servers", 2}}, kGloo);
  bridge.run(many(8));
  CHECK(soon([&] {
    const std::string text = LogLines::all().text();
    return text.find("takes requests") != text.rfind("takes requests");
  }));
  update(bridge, 1, some_weights(1));
  bridge->update_begin(bridge.service(), 2);
  pid_t victim = 0;
  std::ifstream(pids) >> victim;
  REQUIRE(victim > 0);
  ::kill(victim, SIGSTOP);
  auto sent = std::async(std::launch::async, [&] {
    bridge->update_bucket(bridge.service(), List(some_weights(2)).list());
    bridge->update_end(bridge.service(), true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(victim, SIGKILL);
  CHECK(seconds_of([&] { sent.get(); }) < 10);
  CHECK(LogLines::all().has("did not take model.bias and 5 weights more up to model.layers.1.scale: "));
  std::vector<Wish> wishes = many(4);
  for (Wish& wish : wishes) wish.id += 100;
  for (auto& [id, sample] : bridge.run(wishes))
    if (id >= 100) CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 2}});
  CHECK(soon([&] { return LogLines::all().has("it waits for the next weight update: of version 2"); }));
  update(bridge, 3, some_weights(3));
  CHECK(LogLines::all().has("weights of version 3 are in force on 2 SGLang servers"));
}

TEST_CASE("an address on which nobody can listen, or that another host cannot find, is refused by its key") {
  FakeSglang server;
  Harness bridge({&server}, {{"refit_address", "192.0.2.1"}}, kGloo);
  await(bridge, {&server});
  CHECK(has(error_of(bridge, 1, some_weights(1)),
            "weight update: cannot listen on 192.0.2.1: Cannot assign requested address. "
            "policy.generation.sglang_cfg.refit_address wants an IPv4 address of this host"));
  Harness other({&server}, {{"refit_address", "nowhere"}}, kGloo);
  await(other, {&server});
  CHECK(has(error_of(other, 1, some_weights(1)), "weight update: cannot listen on nowhere: Invalid argument."));
}

TEST_SUITE_END();
