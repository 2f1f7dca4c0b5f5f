// Servers of our own: how they are started, and that nothing is left of them.
#include <csignal>
#include <set>
#include <sstream>

#include "plugins/vllm_bridge/arguments.hpp"
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool alive(const std::string& pid) { return !pid.empty() && ::kill(std::stoi(pid), 0) == 0; }

// A server that writes its own number, a helper's, its arguments and its key, and stays.
std::vector<std::string> writer(const std::filesystem::path& dir) {
  const std::string d = dir.string();
  return {"/bin/sh", "-c",
          "sleep 1000 & echo $! > " + d + "/helper; echo \"$@\" > " + d + "/arguments; echo $VLLM_API_KEY $EXTRA > " +
              d + "/key; echo $$ > " + d + "/server; wait",
          "vllm"};
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("servers that end again and again before any has been up end the run's wait, with what they said") {
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "echo no module named vllm >&2; exit 1"}},
                 {{"startup_timeout_s", 600}});
  const auto began = std::chrono::steady_clock::now();
  std::string error;
  try {
    bridge.run({Wish{}});
  } catch (const hexad::sdk::Error& refused) {
    error = refused.what();
  }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(60));
  CHECK_MESSAGE(
      error.find("no vLLM server starts: every one of them has ended 5 times; the newest ended with exit code 1; "
                 "the end of its log: no module named vllm") != std::string::npos,
      error);
  CHECK(error.find("(policy.generation.vllm_cfg.server_command)? The log: ") != std::string::npos);
}

TEST_CASE("a server is started with model, address and a key of its own, and again when it ends") {
  const ModelDir dir;
  Harness bridge(Harness::Spawn{writer(dir.path())},
                 {{"env_vars", {{"EXTRA", "more"}}}, {"tensor_parallel_size", 2}, {"startup_timeout_s", 60}},
                 {{"precision", "float32"}, {"vllm_kwargs", {{"seed", 3}, {"enable_chunked_prefill", false}}}});
  REQUIRE(soon([&] { return !read_file(dir.path() / "server").empty(); }));
  const std::string arguments = read_file(dir.path() / "arguments"), key = read_file(dir.path() / "key");
  CHECK(arguments.find("--model " + bridge.model().path().string() + " --host 127.0.0.1 --port ") == 0);
  for (const char* part : {"--dtype float32", "--max-model-len 4096", "--logprobs-mode processed_logprobs",
                           "--tensor-parallel-size 2", "--seed 3", "--no-enable-chunked-prefill"})
    CHECK_MESSAGE(arguments.find(part) != std::string::npos, part, " in ", arguments);
  CHECK(arguments.find("dummy") == std::string::npos);
  CHECK(key.size() == 64 + 6);
  CHECK(key.substr(64) == " more\n");
  CHECK(!LogLines::all().has(key.substr(0, 64)));
  CHECK(arguments.find(key.substr(0, 64)) == std::string::npos);
  const std::string first = read_file(dir.path() / "server");
  ::kill(std::stoi(first), SIGKILL);
  CHECK(soon([&] {
    const std::string now = read_file(dir.path() / "server");
    return !now.empty() && now != first;
  }));
  CHECK(LogLines::all().has("starts on port"));
  CHECK(read_file(dir.path() / "key") != key);
  const std::string second = read_file(dir.path() / "server");
  bridge.close();
  CHECK(soon([&] { return !alive(second); }));
}

TEST_CASE("a server that never gets ready is killed, named with its log, and poll fails") {
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "echo no such model; exit 3"}}, {{"startup_timeout_s", 1}});
  bridge.submit({Wish{}});
  CHECK_THROWS_WITH_AS(bridge.finish(20), doctest::Contains("ended with exit code 3; the end of its log: "),
                       hexad::sdk::Error);
}

TEST_CASE("what is quoted of a log is the last server's own") {
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "echo began; exit 3"}});
  REQUIRE(soon([] { return LogLines::all().has("It is started again in 0.4 s"); }));
  std::istringstream lines(LogLines::all().text());
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.find("began") == line.rfind("began"));
    if (line.find("exit code 3") != std::string::npos) CHECK(line.find("began") != std::string::npos);
  }
}

TEST_CASE("servers that do not listen yet are not given each other's ports") {
  const FakeVllm taken;
  constexpr int kPorts = 5;
  const int low = taken.port() - 7 * ::getpid() % kPorts;  // the first server begins its search at the taken one
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "sleep 1000"}}, {{"num_servers", 2}},
                 {{"port_range_low", low}, {"port_range_high", low + kPorts - 1}});
  std::set<std::string> ports;
  std::istringstream lines(LogLines::all().text());
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(" starts on port ");
    if (at != std::string::npos) CHECK_MESSAGE(ports.insert(line.substr(at + 16, 5)).second, LogLines::all().text());
  }
  CHECK(ports.size() == 2);
}

TEST_CASE("a model without weights is started with those of the first update") {
  const ModelDir dir, empty(/*weights=*/false);
  Harness bridge(Harness::Spawn{writer(dir.path())}, Json::object(), {{"model_name", empty.path().string()}});
  bridge.submit({Wish{}});
  CHECK_THROWS_WITH_AS(bridge.poll(50), doctest::Contains("requests are waiting, and there are no weights"),
                       hexad::sdk::Error);
  CHECK(!std::filesystem::exists(dir.path() / "server"));
  bridge.update(1, 0.5f);
  REQUIRE(soon([&] { return !read_file(dir.path() / "server").empty(); }));
  CHECK(read_file(dir.path() / "arguments").find("/version_1 --host") != std::string::npos);
}

TEST_CASE("vllm_cfg and vllm_kwargs become vLLM's options") {
  const Json cfg = {{"precision", "bfloat16"},       {"enforce_eager", true},   {"load_format", "dummy"},
                    {"gpu_memory_utilization", 0.5}, {"kv_cache_dtype", "fp8"}, {"enable_prefix_caching", nullptr}};
  const auto joined = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& part : list) text += part + " ";
    return text;
  };
  CHECK(joined(hexad::vllm::server_arguments(cfg, {}, false)) ==
        "--dtype bfloat16 --enforce-eager --kv-cache-dtype fp8 ");
  CHECK(joined(
            hexad::vllm::server_arguments(cfg, {{"dtype", "float16"}, {"sizes", {1, 2}}, {"map", {{"a", 1}}}}, true)) ==
        "--gpu-memory-utilization 0.5 --enforce-eager --kv-cache-dtype fp8 --enable-sleep-mode --dtype float16 "
        "--sizes 1 2 --map {\"a\":1} ");
  CHECK_THROWS_WITH_AS(hexad::vllm::server_arguments(cfg, {{"load_format", "dummy"}}, true),
                       doctest::Contains("vllm_kwargs.load_format: got 'dummy'"), hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(hexad::vllm::server_arguments(cfg, {{"port", 1}}, true),
                       doctest::Contains("vllm_kwargs.port: the bridge sets it"), hexad::sdk::Error);
}

TEST_CASE("a server gets the worker's own GPU, by its number outside") {
  ::setenv("CUDA_VISIBLE_DEVICES", "5,GPU-7", 1);
  CHECK(hexad::vllm::server_environment({}, {kDLCUDA, 1}).at("CUDA_VISIBLE_DEVICES") == "GPU-7");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(hexad::vllm::server_environment({}, {kDLCUDA, 1}).at("CUDA_VISIBLE_DEVICES") == "1");
  CHECK(hexad::vllm::server_environment({}, {kDLCPU, 0}).count("CUDA_VISIBLE_DEVICES") == 0);
}

TEST_CASE("a CUDA server over several devices is refused, unless they are named") {
  using hexad::vllm::refuse_several_devices;
  for (const char* key : {"tensor_parallel_size", "pipeline_parallel_size"}) {
    const Json two = {{key, 2}}, one = {{key, 1}};
    CHECK_THROWS_WITH_AS(refuse_several_devices(two, {}, {}),
                         doctest::Contains((std::string("vllm_cfg.") + key + ": got 2, wanted 1").c_str()),
                         hexad::sdk::Error);
    CHECK_THROWS_WITH_AS(refuse_several_devices(one, two, {{"EXTRA", "1"}}),
                         doctest::Contains("name them all in vllm_cfg.env_vars.CUDA_VISIBLE_DEVICES"),
                         hexad::sdk::Error);
    CHECK_NOTHROW(refuse_several_devices(two, {}, {{"CUDA_VISIBLE_DEVICES", "0,1"}}));
    CHECK_NOTHROW(refuse_several_devices(two, one, {}));
    CHECK_NOTHROW(refuse_several_devices({}, {}, {}));
  }
}

TEST_CASE("a generator that cannot be made leaves no thread behind what it has destroyed") {
  hexad::http::client::EventLoop loop;
  int ran = 0;
  loop.run([&] { ++ran; });
  { const hexad::http::client::StopsLoop end{loop}; }
  CHECK_THROWS(loop.run([&] { ++ran; }));
  CHECK(ran == 1);

  const FakeVllm taken;
  const auto make = [](const Json& cfg, const Json& section) {
    Harness(Harness::Spawn{{"/bin/sh", "-c", "sleep 1000"}}, cfg, section);
  };
  for (int i = 0; i < 20; ++i) {
    CHECK_THROWS_WITH_AS(make({}, {{"port_range_low", taken.port()}, {"port_range_high", taken.port()}}),
                         doctest::Contains("are taken"), hexad::sdk::Error);
    CHECK_THROWS(make({{"server_log_dir", "/dev/null/logs"}}, Json::object()));
  }
}

TEST_SUITE_END();
