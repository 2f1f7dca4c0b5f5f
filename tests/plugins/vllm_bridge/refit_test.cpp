// Weights over disk, pause, sleep.
#include <sys/resource.h>

#include <csignal>

#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

namespace {

int64_t place(const std::vector<std::string>& calls, const std::string& call) {
  const auto found =
      std::find_if(calls.begin(), calls.end(), [&](const std::string& c) { return c.starts_with(call); });
  return found == calls.end() ? -1 : found - calls.begin();
}

std::string takes_requests(const FakeVllm& server) { return server.url() + ") takes requests"; }

// What a call throws while no file may grow beyond so many bytes.
template <typename Function>
std::string error_on_small_disk(rlim_t bytes, const Function& function) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{bytes, before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string error;
  try {
    function();
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  return error;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("an update pauses, loads, resets, resumes, in this order, on every server") {
  FakeVllm first, second;
  Harness bridge({&first, &second});
  bridge.run(many(4));
  while (!(LogLines::all().has(first.url()) && LogLines::all().has(second.url()))) bridge.poll(10);
  bridge.update(1, 0.5f);
  for (const FakeVllm* server : {&first, &second}) {
    const auto calls = server->calls();
    const int64_t at[] = {place(calls, "POST /pause?mode=keep"), place(calls, "POST /collective_rpc"),
                          place(calls, "POST /reset_prefix_cache"), place(calls, "POST /resume")};
    for (int i = 0; i < 4; ++i) CHECK(at[i] > (i ? at[i - 1] : 0));
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

TEST_CASE("what is written is a Hugging Face directory") {
  FakeVllm server;
  const ModelDir parent;
  Harness bridge({&server}, {{"refit_dir", parent.path().string()}});
  bridge.run({Wish{}});
  bridge->update_begin(bridge.service(), 4);
  bridge.bucket("model.a", 1.5f);
  bridge.bucket("model.b", 2.5f);
  bridge->update_end(bridge.service(), true);
  std::filesystem::path dir;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(parent.path())) {
    if (entry.path().filename() == "version_4") dir = entry.path();
  }
  REQUIRE(!dir.empty());
  CHECK(std::filesystem::exists(dir / "config.json"));
  CHECK(std::filesystem::exists(dir / "tokenizer.json"));
  CHECK(!std::filesystem::exists(dir / "model.safetensors"));  // the old weights
  std::ifstream index(dir / "model.safetensors.index.json");
  const Json json = Json::parse(index);
  CHECK(json.at("metadata").at("total_size") == 48);
  CHECK(json.at("weight_map").at("model.a") == "model-00001.safetensors");
  std::ifstream file(dir / json.at("weight_map").at("model.b").get<std::string>(), std::ios::binary);
  uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string header(size, ' ');
  file.read(header.data(), static_cast<std::streamsize>(size));
  CHECK(Json::parse(header).at("model.b") == Json{{"dtype", "F32"}, {"shape", {2, 3}}, {"data_offsets", {0, 24}}});
  CHECK((8 + size) % 8 == 0);
  float value = 0;
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  CHECK(value == 2.5f);
  bridge.close();
  CHECK(std::distance(std::filesystem::directory_iterator(parent.path()), std::filesystem::directory_iterator()) == 3);
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

TEST_CASE("a server that fails at an update is out until it has loaded the weights in force") {
  FakeVllm good, bad;
  Harness bridge({&good, &bad});
  while (!(LogLines::all().has(good.url()) && LogLines::all().has(bad.url()))) bridge.poll(10);
  bad.refuse("/collective_rpc", 500, 2);
  bridge.update(1, 0.5f);
  const auto wishes = many(12);
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id], HEXAD_FINISH_LENGTH, good.weights());
  CHECK(LogLines::all().has("failed at /collective_rpc: status 500: told to refuse"));
  for (int i = 0; i < 100 && !LogLines::all().has("its last failure"); ++i) bridge.poll(50);
  CHECK(LogLines::all().has("it loads the weights in force (version 1)"));
  CHECK(bad.weights() == good.weights());
  CHECK(!bad.paused());
}

TEST_CASE("an update that no server takes fails, and the weights before stay in force") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  bridge.update(1, 0.5f);
  const uint64_t before = server.weights();
  server.refuse("/reset_prefix_cache", 500, 3);
  CHECK_THROWS_WITH_AS(bridge.update(2, 0.75f), doctest::Contains("weight update: no vLLM server took the weights"),
                       hexad::sdk::Error);
  Wish wish;
  wish.id = 3;
  const auto& sample = bridge.run({wish}).at(3);
  check_sample(wish, sample, HEXAD_FINISH_LENGTH, before);
  CHECK(sample.spans[0].second == 1);
}

TEST_CASE("the only server fails at an update once: it is asked again when it is back") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  server.refuse("/collective_rpc", 500, 1);
  bridge.update(1, 0.5f);
  CHECK(LogLines::all().has("weight update: no vLLM server took the weights of version 1: vLLM server 0"));
  const auto& sample = bridge.run({Wish{.id = 1}}).at(1);
  check_sample(Wish{.id = 1}, sample, HEXAD_FINISH_LENGTH, server.weights());
  CHECK(sample.spans[0].second == 1);
}

TEST_CASE("the only server hangs in an update until its deadline: it is asked again when it is back") {
  FakeVllm server;
  Harness bridge({&server}, {{"control_timeout_s", 0.5}});
  bridge.run({Wish{}});
  server.gate("/collective_rpc");
  std::thread meanwhile([&] {
    CHECK(soon([] { return LogLines::all().has("failed at /collective_rpc: Operation timed out"); }));
    server.open_gate();
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(bridge.run({Wish{.id = 1}}).at(1).spans[0].second == 1);
}

TEST_CASE("the only server dies in an update: whoever comes in its place loads it") {
  auto server = std::make_unique<FakeVllm>();
  const int port = server->port();
  Harness bridge({server.get()}, {{"control_timeout_s", 0.5}});
  bridge.run({Wish{}});
  server->gate("/collective_rpc");
  std::thread meanwhile([&] {
    CHECK(soon([&] { return server->count("POST /collective_rpc") > 0; }));
    server = nullptr;
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(LogLines::all().has("no vLLM server took the weights of version 1: vLLM server 0"));
  const FakeVllm heir({.port = port});
  const auto& sample = bridge.run({Wish{.id = 1}}).at(1);
  CHECK(heir.weights() != 0);
  check_sample(Wish{.id = 1}, sample, HEXAD_FINISH_LENGTH, heir.weights());
  CHECK(sample.spans[0].second == 1);
}

TEST_CASE("a server that broke off the very first update loads the weights in force before it serves again") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  server.refuse("/reset_prefix_cache", 500, 3);
  CHECK_THROWS_WITH_AS(bridge.update(1, 0.5f), doctest::Contains("no vLLM server took the weights"), hexad::sdk::Error);
  const auto& sample = bridge.run({Wish{.id = 1}}).at(1);
  CHECK(server.weights() == weights_in(bridge.model().path()));
  check_sample(Wish{.id = 1}, sample, HEXAD_FINISH_LENGTH, server.weights());
  CHECK(sample.spans[0].second == 0);
}

TEST_CASE("a disk that is full for a while delays an update") {
  for (const bool at_index : {false, true}) {
    CAPTURE(at_index);
    Harness bridge(std::vector<const FakeVllm*>{});
    const std::filesystem::path dir = bridge.model().path() / "refit";
    hexad::vllm::Checkpoint checkpoint(dir, bridge.model().path(), hexad::vllm::Seconds(20));
    const std::string part = dir.string() + ".part/";
    const std::string full = part + (at_index ? "model.safetensors.index.json" : "model-00001.safetensors");
    std::filesystem::create_symlink("/dev/full", full);
    std::thread meanwhile([&] {
      CHECK(soon([] { return LogLines::all().has("No space left on device. It is tried again for 20 s"); }));
      std::filesystem::remove(full);
    });
    std::vector<float> data(6, 1.0f);
    int64_t shape[] = {2, 3}, offsets[] = {0, 0};
    DLTensor tensor{data.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
    const hexad_weight_slice slice{"w", &tensor, shape, offsets, shape, 2, tensor.dtype};
    checkpoint.add(bridge.service(), {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1});
    CHECK(checkpoint.finish(bridge.service()) == dir);
    meanwhile.join();
    CHECK(std::filesystem::file_size(dir / "model-00001.safetensors") > 24);
    CHECK(std::filesystem::exists(dir / "config.json"));
  }
}

TEST_CASE("a disk that stays full is named in time") {
  Harness bridge(std::vector<const FakeVllm*>{});
  const std::filesystem::path dir = bridge.model().path() / "refit";
  hexad::vllm::Checkpoint checkpoint(dir, bridge.model().path(), hexad::vllm::Seconds(0.3));
  std::filesystem::create_symlink("/dev/full", dir.string() + ".part/model-00001.safetensors");
  float one = 1;
  int64_t shape[] = {1}, offsets[] = {0};
  DLTensor tensor{&one, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  const hexad_weight_slice slice{"w", &tensor, shape, offsets, shape, 1, tensor.dtype};
  CHECK_THROWS_WITH_AS(checkpoint.add(bridge.service(), {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1}),
                       doctest::Contains("model-00001.safetensors: No space left on device. Free space there"),
                       hexad::sdk::Error);
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

TEST_CASE("a pause keeps everything, with and without development endpoints; sleep too") {
  for (const bool dev_mode : {true, false}) {
    for (const bool sleeps : {false, true}) {
      CAPTURE(dev_mode);
      CAPTURE(sleeps);
      FakeVllm server({.dev_mode = dev_mode, .token_ms = 3});
      Harness bridge({&server});
      const auto wishes = many(6, 40);
      bridge.submit(wishes);
      while (server.running() < 6) bridge.poll(5);
      sleeps ? bridge->sleep(bridge.service(), 1) : bridge->pause(bridge.service());
      bridge.submit({Wish{.id = 100}});
      const auto early = bridge.samples.size();
      for (int i = 0; i < 10; ++i) bridge.poll(30);
      CHECK(bridge.samples.size() == early);
      sleeps ? bridge->wake(bridge.service()) : bridge->resume(bridge.service());
      auto& samples = bridge.finish();
      for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
      check_sample(Wish{.id = 100}, samples[100]);
    }
  }
}

TEST_CASE("a server that somebody left paused is resumed before it gets requests") {
  FakeVllm server;
  {
    Harness bridge({&server});
    bridge.run({Wish{}});
    bridge->pause(bridge.service());
  }
  CHECK(server.paused());
  Harness bridge({&server});
  check_sample(Wish{}, bridge.run({Wish{}}).at(0));
}

TEST_CASE("after sleep without weights requests wait for an update") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  CHECK_THROWS_WITH_AS(bridge->sleep(bridge.service(), 3), doctest::Contains("sleep: got level 3"), hexad::sdk::Error);
  bridge->sleep(bridge.service(), 2);
  bridge->wake(bridge.service());
  bridge.submit({Wish{.id = 1}});
  for (int i = 0; i < 5; ++i) bridge.poll(30);
  CHECK(bridge.samples.size() == 1);
  bridge.update(1, 2.0f);
  check_sample(Wish{.id = 1}, bridge.finish().at(1), HEXAD_FINISH_LENGTH, server.weights());
}

TEST_CASE("other transports and router replay are refused with a word") {
  FakeVllm server;
  CHECK_THROWS_WITH_AS(Harness({&server}, Json::object(), {{"refit_transport", "nccl_reshard"}}),
                       doctest::Contains("got 'nccl_reshard'. Weights reach vLLM by disk, ipc or nccl"),
                       hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(Harness({&server}, Json::object(), {{"return_routed_experts", true}}),
                       doctest::Contains("the backend wants routed_experts"), hexad::sdk::Error);
}

TEST_CASE("a server that comes up while others load an update loads it before it takes requests") {
  FakeVllm first, late;
  late.set_healthy(false);
  Harness bridge({&first, &late});
  bridge.run({Wish{}});
  first.gate("/collective_rpc");
  std::thread meanwhile([&] {
    soon([&] { return first.count("POST /collective_rpc") > 0; });
    late.set_healthy(true);
    soon([&] { return LogLines::all().has(takes_requests(late)); });
    first.open_gate();
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(LogLines::all().has(takes_requests(late)));
  CHECK(soon([&] { return late.weights() == first.weights(); }, 300));
  auto wishes = many(12);
  for (Wish& wish : wishes) wish.id += 10;
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id], HEXAD_FINISH_LENGTH, first.weights());
}

TEST_CASE("a server that starts again after its reload, before the update's end, loads once more") {
  auto dies = std::make_unique<FakeVllm>(FakeVllm::Options{.token_ms = 3});
  FakeVllm slow({.token_ms = 3});
  Harness bridge({dies.get(), &slow});
  while (!(LogLines::all().has(takes_requests(*dies)) && LogLines::all().has(takes_requests(slow)))) bridge.poll(10);
  bridge.submit(many(16, 40));
  while (dies->running() < 4) bridge.poll(5);
  slow.gate("/collective_rpc");
  std::thread meanwhile([&] {
    soon([&] { return slow.count("POST /collective_rpc") > 0 && dies->weights() != 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its answer is on its way
    const int port = dies->port();
    LogLines::all().clear();
    dies = nullptr;
    dies = std::make_unique<FakeVllm>(FakeVllm::Options{.port = port, .token_ms = 3});
    soon([&] { return LogLines::all().has(takes_requests(*dies)); });
    slow.open_gate();
  });
  bridge.update(1, 0.5f);
  meanwhile.join();
  CHECK(LogLines::all().has(takes_requests(*dies)));
  CHECK(soon([&] { return dies->weights() == slow.weights(); }, 300));
  bridge.finish();
  auto wishes = many(12);
  for (Wish& wish : wishes) wish.id += 100;
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id], HEXAD_FINISH_LENGTH, slow.weights());
}

TEST_CASE("an answer to a reset that makes no sense does not stop the servers") {
  FakeVllm server({.reset_success = "yes"});
  Harness bridge({&server});
  bridge.run({Wish{}});
  bridge.update(1, 0.5f);
  CHECK(!server.paused());
  check_sample(Wish{.id = 1}, bridge.run({Wish{.id = 1}}).at(1), HEXAD_FINISH_LENGTH, server.weights());
}

TEST_CASE("an update that throws half way holds nothing back") {
  auto taken = std::make_unique<FakeVllm>();
  const int port = taken->port();
  const ModelDir empty(/*weights=*/false);
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "sleep 1000"}}, Json::object(),
                 {{"model_name", empty.path().string()}, {"port_range_low", port}, {"port_range_high", port}});
  CHECK_THROWS_WITH_AS(bridge.update(1, 0.5f), doctest::Contains("are taken"), hexad::sdk::Error);
  taken = nullptr;
  bridge.update(2, 0.5f);
  const FakeVllm server({.port = port});  // in the place of the child, which does not serve
  CHECK(bridge.run({Wish{}}).at(0).tokens.size() == 12);
}

TEST_CASE("a pause, a sleep without weights and an update may overlap") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  bridge->pause(bridge.service());
  bridge->sleep(bridge.service(), 2);
  bridge->wake(bridge.service());
  bridge.update(1, 2.0f);
  bridge.submit({Wish{.id = 1}});
  for (int i = 0; i < 5; ++i) bridge.poll(30);
  CHECK(bridge.samples.size() == 1);
  bridge->resume(bridge.service());
  check_sample(Wish{.id = 1}, bridge.finish().at(1), HEXAD_FINISH_LENGTH, server.weights());

  bridge->sleep(bridge.service(), 2);
  bridge->wake(bridge.service());
  bridge->sleep(bridge.service(), 1);  // still without weights
  bridge->wake(bridge.service());
  bridge.submit({Wish{.id = 2}});
  for (int i = 0; i < 5; ++i) bridge.poll(30);
  CHECK(bridge.samples.size() == 2);
  bridge.update(2, 3.0f);
  check_sample(Wish{.id = 2}, bridge.finish().at(2), HEXAD_FINISH_LENGTH, server.weights());
}

TEST_CASE("a disk that is full at the end of an update is named, with what to do") {
  for (const bool at_index : {true, false}) {
    CAPTURE(at_index);
    Harness bridge(std::vector<const FakeVllm*>{});
    std::ofstream(bridge.model().path() / "vocab.txt") << std::string(at_index ? 1 : 9000, 'x');
    hexad::vllm::Checkpoint checkpoint(bridge.model().path() / "refit", bridge.model().path(), hexad::vllm::Seconds(0));
    std::vector<float> data(6, 1.0f);
    int64_t shape[] = {2, 3}, offsets[] = {0, 0};
    DLTensor tensor{data.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
    const std::string name(at_index ? 900 : 9, 'w');
    const hexad_weight_slice slice{name.c_str(), &tensor, shape, offsets, shape, 2, tensor.dtype};
    checkpoint.add(bridge.service(), {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1});
    const std::string error = error_on_small_disk(500, [&] { checkpoint.finish(bridge.service()); });
    CHECK_MESSAGE(error.find(at_index ? "model.safetensors.index.json: " : "vocab.txt: ") != std::string::npos, error);
    CHECK(error.find("weight update: cannot write ") == 0);
    CHECK(error.find("or set policy.generation.vllm_cfg.refit_dir to a folder with room") != std::string::npos);
  }
}

TEST_CASE("a folder of weights stays while a server is starting from it") {
  const ModelDir parent, empty(/*weights=*/false);
  const int port = FakeVllm().port();
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "sleep 1000"}}, {{"refit_dir", parent.path().string()}},
                 {{"model_name", empty.path().string()}, {"port_range_low", port}, {"port_range_high", port}});
  const auto there = [&](int version) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(parent.path())) {
      if (entry.path().filename() == "version_" + std::to_string(version)) return true;
    }
    return false;
  };
  for (int version = 1; version <= 4; ++version) bridge.update(version, static_cast<float>(version));
  CHECK(there(1));
  CHECK(!there(2));
  CHECK(there(3));
  CHECK(there(4));
  const FakeVllm server({.port = port});  // in the place of the child, which does not serve
  REQUIRE(soon([&] { return LogLines::all().has(takes_requests(server)); }));
  bridge.update(5, 5);
  CHECK(!there(1));
  CHECK(!there(3));
  CHECK(there(4));
}

TEST_SUITE_END();
