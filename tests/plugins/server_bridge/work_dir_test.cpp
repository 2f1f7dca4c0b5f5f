// The folders of weights that stay beside those in force.
#include "plugins/server_bridge/work_dir.hpp"

#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;
using namespace bridge_test;

using hexad::bridge::WorkDir;
namespace fs = std::filesystem;

TEST_CASE("of the weights that were in force the last two stay, and what is being read; the end leaves nothing") {
  const ModelDir parent;
  fs::path of_work;
  std::vector<fs::path> dirs;
  const auto there = [&] {
    std::string text;
    for (const fs::path& dir : dirs) text += fs::exists(dir) ? '1' : '0';
    return text;
  };
  {
    WorkDir work(parent.path().string(), "servers", "the.key");
    of_work = work.path();
    CHECK(of_work.parent_path() == parent.path());
    const auto keep = [&](int64_t version, int64_t being_read) {
      const fs::path dir = work.weights(version);
      fs::create_directories(dir);
      if (std::ranges::find(dirs, dir) == dirs.end()) dirs.push_back(dir);
      work.keep(dir, [&](const fs::path& old) { return old == work.weights(being_read); });
      return there();
    };
    CHECK(keep(1, 0) == "1");
    CHECK(keep(2, 0) == "11");
    CHECK(keep(3, 1) == "111");
    CHECK(keep(4, 1) == "1011");
    CHECK(keep(3, 0) == "0011");  // the same version again is one folder
  }
  CHECK(!fs::exists(of_work));
}

TEST_CASE("a folder that cannot be written is named with its key") {
  CHECK_THROWS_WITH_AS(
      WorkDir("/proc", "servers", "the.key"),
      doctest::Contains("cannot make a folder for weights and logs in /proc: wanted a folder that can be "
                        "written, named by the.key"),
      hexad::sdk::Error);
}

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

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
