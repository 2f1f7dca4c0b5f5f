// Weights by NCCL. Without GPUs: the driver is fake_cuda.c, NCCL is fake_nccl.c, and servers are in this process.
#include "tests/plugins/sglang_bridge/support/weights.hpp"

using namespace sglang_test;

namespace {

const Json kNccl = {{"refit_transport", "nccl"}};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("weights by NCCL arrive on every rank, under the id that torch.distributed looks for") {
  use_fake_nccl();
  FakeSglang first({.tp_size = 2}), second;
  Harness bridge(Harness::OnGpu{}, {&first, &second}, kNccl);
  await(bridge, {&first, &second});
  update(bridge, 1, some_weights(1));
  for (FakeSglang* server : {&first, &second}) {
    CHECK(server->groups().weights() == some_weights(1));
    CHECK(!server->paused());
    const std::vector<std::string> calls = server->since_pause();
    REQUIRE(calls.size() >= 7);
    CHECK(has(calls[1], R"("rank_offset":1,"world_size":)" + std::to_string(server == &first ? 3 : 2)));
    CHECK(calls[1].ends_with(R"("backend":"nccl"})"));
    CHECK(calls[2] == "POST /begin_weight_update {}");
    CHECK(has(calls[3], R"("flush_cache":false,"weight_version":"1","load_format":"flattened_bucket"})"));
    CHECK(calls[4] == "POST /end_weight_update {}");
  }
  CHECK(LogLines::all().has("weights reach the SGLang servers by nccl"));
  update(bridge, 2, some_weights(2));
  CHECK(first.groups().weights() == some_weights(2));
  CHECK(second.count("POST /init_weights_update_group") == 1);
  bridge.close();
  CHECK(first.groups().groups() == 0);
}

TEST_CASE("a server that refuses a bucket by NCCL ends its broadcast at once; its next group is new") {
  use_fake_nccl();
  FakeSglang good, bad;
  Harness bridge(Harness::OnGpu{}, {&good, &bad}, kNccl);
  await(bridge, {&good, &bad});
  bad.refuse("/update_weights_from_distributed", 400, R"({"success":false,"message":"there is no room"})", 1);
  const auto began = std::chrono::steady_clock::now();
  update(bridge, 1, some_weights(1));
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
  CHECK(good.groups().weights() == some_weights(1));
  CHECK(bad.groups().groups() == 0);
  CHECK(
      LogLines::all().has("did not take model.bias and 5 weights more up to model.layers.1.scale: weight update by "
                          "NCCL: joining the others did not end: the server says status 400: there is no room"));
  CHECK(soon([&] { return LogLines::all().has(bad.url() + "): it waits for the next weight update: of version 1"); }));
  update(bridge, 2, some_weights(2));
  bad.refuse("/update_weights_from_distributed", 400, R"({"success":false,"message":"nor now"})", 1);
  update(bridge, 3, some_weights(3));
  CHECK(LogLines::all().has("weight update by NCCL: a broadcast did not end: the server says status 400: nor now"));
  CHECK(soon([&] { return LogLines::all().has(bad.url() + "): it waits for the next weight update: of version 3"); }));
  update(bridge, 4, some_weights(4));
  CHECK(bad.groups().weights() == some_weights(4));
  CHECK(bad.count("POST /init_weights_update_group") == 3);
  CHECK(good.count("POST /init_weights_update_group") == 1);
}

TEST_CASE("a server on a CPU is no member of a group over NCCL") {
  use_fake_nccl();
  FakeSglang good, on_cpu({.device = "cpu"});
  Harness bridge(Harness::OnGpu{}, {&good, &on_cpu}, kNccl);
  await(bridge, {&good, &on_cpu});
  update(bridge, 1, some_weights(1));
  CHECK(good.groups().weights() == some_weights(1));
  CHECK(on_cpu.count("POST /init_weights_update_group") == 0);
  CHECK(LogLines::all().has("did not take weights: its device is cpu: wanted cuda"));
}

TEST_CASE("a value that nobody has put into a store is not waited for for ever") {
  const hexad::refit::Store here("127.0.0.1", "key");
  hexad::refit::Store there("127.0.0.1", here.port(), 200);
  CHECK_THROWS_WITH_AS(there.get("group/0"), doctest::Contains("has no value group/0: "), hexad::sdk::Error);
}

TEST_SUITE_END();
