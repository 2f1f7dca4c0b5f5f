// Weights from GPU to GPU. Without a GPU: the driver is support/fake_cuda.c, and a server maps its memory as an
// address.
#include <dlfcn.h>

#include "plugins/vllm_bridge/refit/pickle.hpp"
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

namespace {

void use_fake_cuda() {
  static void* const library = ::dlopen(HEXAD_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(library != nullptr);
}

FakeVllm::Options offers(const std::string& backend) {
  FakeVllm::Options options;
  options.weight_transfer = backend;
  return options;
}

std::string bytes_of(float value) {
  const std::vector<float> data(6, value);
  return {reinterpret_cast<const char*>(data.data()), data.size() * sizeof(float)};
}

uint64_t model_with(const std::vector<std::pair<std::string, float>>& weights) {
  uint64_t hash = 0;
  for (const auto& [name, value] : weights) hash = add_weight(hash, name, bytes_of(value));
  return hash;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("servers on this GPU take each bucket from its memory, paused from the first to the last") {
  use_fake_cuda();
  FakeVllm first(offers("ipc")), second(offers("ipc"));
  Harness bridge(Harness::OnGpu{}, {&first, &second});
  bridge.run(many(4));
  bridge->update_begin(bridge.service(), 1);
  CHECK(first.paused());
  bridge.bucket("model.a", 0.5f);
  bridge.bucket("model.b", 1.5f);
  bridge->update_end(bridge.service(), true);
  const uint64_t weights = model_with({{"model.a", 0.5f}, {"model.b", 1.5f}});
  for (const FakeVllm* server : {&first, &second}) {
    CHECK(server->weights() == weights);
    CHECK(!server->paused());
    CHECK(server->count("POST /collective_rpc") == 0);
    CHECK(server->came_in_order({"POST /pause?mode=keep", "POST /init_weight_transfer_engine",
                                 "POST /start_weight_update", "POST /update_weights", "POST /finish_weight_update",
                                 "POST /reset_prefix_cache", "POST /resume"}));
  }
  CHECK(LogLines::all().has("weights reach the vLLM servers by ipc"));
  const Wish wish{.id = 9};
  const auto& sample = bridge.run({wish}).at(9);
  check_sample(wish, sample, HEXAD_FINISH_LENGTH, weights);
  CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 1}});
  bridge.update(2, 3.0f);
  CHECK(first.weights() == model_with({{"model.w", 3.0f}}));
  CHECK(first.count("POST /init_weight_transfer_engine") == 1);  // of the process, not of the update
}

TEST_CASE("disk is used where it is asked for, where servers offer nothing or not the same") {
  use_fake_cuda();
  FakeVllm plain, ipc(offers("ipc")), old(offers("ipc"));
  for (const auto& [servers, section] : std::vector<std::pair<std::vector<const FakeVllm*>, Json>>{
           {{&plain}, Json::object()}, {{&ipc}, {{"refit_transport", "disk"}}}, {{&ipc, &plain}, Json::object()}}) {
    Harness bridge(Harness::OnGpu{}, servers, section);
    bridge.run(many(4));
    bridge.update(1, 0.5f);
    CHECK(LogLines::all().has("weights reach the vLLM servers by disk"));
    CHECK(servers[0]->count("POST /collective_rpc") > 0);
    CHECK(servers[0]->count("POST /start_weight_update") == 0);
  }
}

TEST_CASE("a transport that a server does not offer is refused with what to do") {
  use_fake_cuda();
  FakeVllm plain;
  FakeVllm::Options early = offers("ipc");
  early.version = "0.23.0";
  FakeVllm old(early);
  for (const auto& [server, part] : {std::pair<const FakeVllm*, const char*>{&plain, "(vLLM 0.24.0) offers no weight"},
                                     {&old, "(vLLM 0.23.0) offers no weight transfer. Start it, vLLM 0.24 or newer"}}) {
    Harness bridge(Harness::OnGpu{}, {server}, {{"refit_transport", "ipc"}});
    bridge.run({Wish{}});
    CHECK_THROWS_WITH_AS(bridge.update(1, 1.0f), doctest::Contains(part), hexad::sdk::Error);
  }
}

TEST_CASE("a server that fails at a bucket is out until the next update, and others go on") {
  use_fake_cuda();
  FakeVllm good(offers("ipc")), bad(offers("ipc"));
  Harness bridge(Harness::OnGpu{}, {&good, &bad});
  bridge.run(many(4));
  while (!(LogLines::all().has(good.url()) && LogLines::all().has(bad.url()))) bridge.poll(10);
  bad.refuse("/update_weights", 500, 1);
  bridge.update(1, 1.0f);
  CHECK(good.weights() == model_with({{"model.w", 1.0f}}));
  CHECK(soon([&] { return LogLines::all().has(bad.url() + "): it waits for the next weight update: of version 1"); }));
  const size_t asked = bad.generations().size();
  std::vector<Wish> wishes = many(8);
  for (Wish& wish : wishes) wish.id += 100;
  for (const Wish& wish : wishes) check_sample(wish, bridge.run({wish})[wish.id], HEXAD_FINISH_LENGTH, good.weights());
  CHECK(bad.generations().size() == asked);
  bridge.update(2, 2.0f);
  CHECK(bad.weights() == good.weights());
  CHECK(bad.weights() == model_with({{"model.w", 2.0f}}));
  CHECK(soon(
      [&] {
        wishes = many(8);
        for (Wish& wish : wishes) wish.id += 200;
        bridge.run(wishes);
        return bad.generations().size() > asked;
      },
      20));
}

TEST_CASE("an update that no server takes fails: of the model's own weights there is a copy") {
  use_fake_cuda();
  FakeVllm server(offers("ipc"));
  Harness bridge(Harness::OnGpu{}, {&server});
  bridge.run({Wish{}});
  server.refuse("/finish_weight_update", 500, 1);
  CHECK_THROWS_WITH_AS(bridge.update(1, 1.0f), doctest::Contains("no vLLM server took the weights: vLLM server 0"),
                       hexad::sdk::Error);
  check_sample(Wish{.id = 5}, bridge.run({Wish{.id = 5}})[5], HEXAD_FINISH_LENGTH, weights_in(bridge.model().path()));
  CHECK(server.count("POST /collective_rpc") == 1);
}

TEST_CASE("without a copy of the weights in force, and a server that has them, the run ends and says why") {
  use_fake_cuda();
  FakeVllm server(offers("ipc"));
  Harness bridge(Harness::OnGpu{}, {&server}, Json::object(), {{"lost_timeout_s", 1}});
  bridge.run({Wish{}});
  bridge.update(1, 1.0f);
  server.refuse("/update_weights", 500, 1);
  CHECK_THROWS_WITH_AS(bridge.update(2, 2.0f), doctest::Contains("there is no copy of those before"),
                       hexad::sdk::Error);
  const size_t asked = server.generations().size();
  bridge.submit({Wish{.id = 5}});
  CHECK_THROWS_WITH_AS(bridge.finish(), doctest::Contains("it waits for the next weight update: of version 1"),
                       hexad::sdk::Error);
  CHECK(server.generations().size() == asked);
}

TEST_CASE("an update that a trainer before this one left open on a server is ended first") {
  use_fake_cuda();
  FakeVllm server(offers("ipc"));
  {
    Harness killed(Harness::OnGpu{}, {&server});
    killed.run({Wish{}});
    server.refuse("/finish_weight_update", 500);  // nobody ended it
    killed->update_begin(killed.service(), 1);
    killed.bucket("model.w", 7.0f);
  }
  server.refuse("/none", 500);
  Harness bridge(Harness::OnGpu{}, {&server});
  bridge.run({Wish{.id = 3}});
  bridge.update(1, 1.0f);
  CHECK(server.weights() == model_with({{"model.w", 1.0f}}));
}

TEST_CASE("a server that fails at the pause takes no part in the update, and none waits for absent ones for ever") {
  use_fake_cuda();
  FakeVllm good(offers("ipc")), bad(offers("ipc")), absent(offers("ipc"));
  absent.set_healthy(false);
  Harness bridge(Harness::OnGpu{}, {&good, &bad, &absent}, Json::object(), {{"startup_timeout_s", 1}});
  bridge.run(many(4));
  while (!(LogLines::all().has(good.url() + ") takes") && LogLines::all().has(bad.url() + ") takes"))) bridge.poll(10);
  bad.refuse("/pause", 500, 1);
  const auto began = std::chrono::steady_clock::now();
  bridge.update(1, 1.0f);
  bridge.update(2, 2.0f);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(15));
  CHECK(good.weights() == model_with({{"model.w", 2.0f}}));
  CHECK(good.count("POST /start_weight_update") == 2);
  CHECK(bad.count("POST /start_weight_update") <= 1);
}

TEST_CASE("a part of a weight is refused, and the update ends on the server") {
  use_fake_cuda();
  FakeVllm server(offers("ipc"));
  Harness bridge(Harness::OnGpu{}, {&server});
  bridge.run({Wish{}});
  bridge->update_begin(bridge.service(), 1);
  std::vector<float> data(6, 1);
  int64_t shape[] = {2, 3}, whole[] = {4, 3}, offsets[] = {0, 0};
  DLTensor tensor{data.data(), {kDLCUDA, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  const hexad_weight_slice part{"model.w", &tensor, whole, offsets, shape, 2, tensor.dtype};
  const hexad_weight_list list{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &part, 1};
  CHECK_THROWS_WITH_AS(bridge->update_bucket(bridge.service(), list),
                       doctest::Contains("got a part of model.w, wanted the whole weight"), hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(bridge->update_end(bridge.service(), true), doctest::Contains("a bucket of it was refused"),
                       hexad::sdk::Error);
  CHECK(server.count("POST /finish_weight_update") == 1);  // else the next could not start
}

TEST_CASE("what vLLM unpickles") {
  std::array<std::byte, 16> uuid{};
  for (size_t i = 0; i < uuid.size(); ++i) uuid[i] = static_cast<std::byte>(i * 17);
  CHECK(hexad::bridge::uuid_text(uuid) == "00112233-4455-6677-8899-aabbccddeeff");
  hexad::bridge::SharedMemory memory{.uuid = "gpu", .bytes = 4096};
  memory.handle.fill(std::byte{'h'});
  const std::string pickle = hexad::vllm::ipc_pickle(memory);
  CHECK(pickle.starts_with(std::string("\x80\x03}X\x03\0\0\0gpu(ctorch\nTensor\n", 26)));
  CHECK(pickle.find("C\x42\x01"
                    "c" +
                    std::string(64, 'h')) != std::string::npos);
  CHECK(pickle.ends_with("\x89ts."));
  hexad::vllm::UniqueId id{};
  id.fill(std::byte{'i'});
  const std::string id_pickle = hexad::vllm::unique_id_pickle(id);
  CHECK(id_pickle.size() == 247);
  CHECK(id_pickle.substr(111, 128) == std::string(128, 'i'));
}

TEST_SUITE_END();
