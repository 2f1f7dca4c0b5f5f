// Weights by CUDA IPC. Without a GPU: the driver is fake_cuda.c, and a server maps its memory as an address.
#include <dlfcn.h>

#include "plugins/server_bridge/refit/own_host.hpp"
#include "tests/plugins/sglang_bridge/support/weights.hpp"

using namespace sglang_test;

namespace {

const Json kIpc = {{"refit_transport", "ipc"}};

void use_fake_cuda() {
  static void* const library = ::dlopen(HEXAD_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(library != nullptr);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("SGLang servers on this GPU take each bucket from its memory, a payload a rank, paused meanwhile") {
  use_fake_cuda();
  FakeSglang first({.tp_size = 2}), second;
  Harness bridge(Harness::OnGpu{}, {&first, &second}, kIpc);
  await(bridge, {&first, &second});
  const Weights weights = some_weights(1);
  bridge->update_begin(bridge.service(), 1);
  CHECK(first.paused());
  bridge->update_bucket(bridge.service(), List(weights, {kDLCUDA, 0}).list());
  Weights more = {{"lm_head.weight", {"float32", {1}, "abcd"}}};
  bridge->update_bucket(bridge.service(), List(more, {kDLCUDA, 0}).list());
  bridge->update_end(bridge.service(), true);
  more.insert(weights.begin(), weights.end());
  for (FakeSglang* server : {&first, &second}) {
    CHECK(server->groups().weights() == more);
    CHECK(!server->paused());
    const std::vector<std::string> calls = server->since_pause();
    REQUIRE(calls.size() >= 7);
    CHECK(calls[1] == "POST /begin_weight_update {}");
    CHECK(calls[2].starts_with(R"(POST /update_weights_from_tensor {"serialized_named_tensors":[")"));
    CHECK(calls[2].ends_with(R"("],"load_format":"flattened_bucket","flush_cache":false,"weight_version":"1"})"));
    CHECK(calls[4] == "POST /end_weight_update {}");
    CHECK(calls[5] == "POST /flush_cache {}");
    CHECK(calls[6] == "POST /continue_generation {}");
  }
  CHECK(LogLines::all().has("weights reach the SGLang servers by ipc"));
  const auto& sample = bridge.run({Wish{.id = 9}}).at(9);
  check_sample(Wish{.id = 9}, sample, HEXAD_FINISH_LENGTH, first.weights());
  CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 1}});
  const Weights others = some_weights(2);
  update(bridge, 2, others);
  CHECK(second.groups().weights().at("model.norm.weight") == others.at("model.norm.weight"));
}

TEST_CASE("two calls in a row are of other memory, as ranks of a server may still copy from the first") {
  use_fake_cuda();
  FakeSglang server({.tp_size = 2});
  Harness bridge(Harness::OnGpu{}, {&server}, kIpc);
  await(bridge, {&server});
  bridge->update_begin(bridge.service(), 1);
  for (int i = 0; i < 3; ++i) bridge->update_bucket(bridge.service(), List(some_weights(1), {kDLCUDA, 0}).list());
  bridge->update_end(bridge.service(), true);
  std::vector<std::string> calls;
  for (const std::string& call : server.since_pause())
    if (call.starts_with("POST /update_weights_from_tensor")) calls.push_back(call);
  REQUIRE(calls.size() == 3);
  CHECK(calls[0] != calls[1]);
  CHECK(calls[0] == calls[2]);
}

TEST_CASE("an SGLang server that refuses a bucket by CUDA IPC is out until the next update, by its words") {
  use_fake_cuda();
  FakeSglang good, bad;
  Harness bridge(Harness::OnGpu{}, {&good, &bad}, kIpc);
  await(bridge, {&good, &bad});
  bad.refuse("/update_weights_from_tensor", 400, R"({"success":false,"message":"there is no room"})", 1);
  update(bridge, 1, some_weights(1));
  CHECK(good.groups().weights() == some_weights(1));
  CHECK(bad.groups().weights().empty());
  CHECK(LogLines::all().has("failed at /update_weights_from_tensor: status 400: there is no room"));
  CHECK(soon([&] { return LogLines::all().has(bad.url() + "): it waits for the next weight update: of version 1"); }));
  update(bridge, 2, some_weights(2));
  CHECK(bad.groups().weights() == some_weights(2));
}

TEST_CASE("an SGLang server without a GPU, or with ranks of another kind, is given no memory of one") {
  use_fake_cuda();
  FakeSglang good, on_cpu({.device = "cpu"}), parallel({.dp_size = 2});
  Harness bridge(Harness::OnGpu{}, {&good, &on_cpu, &parallel}, kIpc);
  await(bridge, {&good, &on_cpu, &parallel});
  update(bridge, 1, some_weights(1));
  CHECK(good.groups().weights() == some_weights(1));
  CHECK(on_cpu.count("POST /update_weights_from_tensor") == 0);
  CHECK(
      LogLines::all().has("did not take weights: its device is cpu: wanted cuda, as these weights go from GPU to GPU. "
                          "Set policy.generation.refit_transport to gloo or disk"));
  CHECK(LogLines::all().has("did not take weights: its dp_size is 2: wanted 1"));
}

TEST_CASE("a server on another host is known by its address") {
  for (const char* url : {"http://127.0.0.1:80", "http://localhost:80/v1", "http://[::1]:80", "https://0.0.0.0"}) {
    CAPTURE(url);
    hexad::bridge::check_own_host(url);
  }
  for (const char* url : {"http://192.0.2.1:80", "http://no.such.host.invalid"}) {
    CAPTURE(url);
    CHECK_THROWS_WITH_AS(
        hexad::bridge::check_own_host(url),
        doctest::Contains("is no address of this host, whose memory it is to map (CUDA IPC): wanted a server on the "
                          "rank's own GPU. Set policy.generation.refit_transport to nccl, gloo or disk"),
        hexad::sdk::Error);
  }
}

TEST_SUITE_END();
