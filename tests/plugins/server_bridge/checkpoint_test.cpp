// The folder that an update writes, and disks that are full.
#include <sys/resource.h>

#include <csignal>

#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;
using namespace bridge_test;

namespace {

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

TEST_CASE("a file that a link names outside of the model's folder is linked, and not copied") {
  HostCall host;
  const ModelDir model, elsewhere;
  std::ofstream(elsewhere.path() / "vocab.txt") << "of somebody else";
  std::filesystem::create_symlink(elsewhere.path() / "vocab.txt", model.path() / "vocab.txt");
  std::filesystem::create_symlink("config.json", model.path() / "other_name.json");
  const std::filesystem::path dir = model.path() / "refit";
  hexad::bridge::Checkpoint checkpoint(dir, model.path(), hexad::bridge::Seconds(20), "the.key");
  checkpoint.add(host.service(), Bucket("w").list());
  checkpoint.finish(host.service());
  CHECK(std::filesystem::read_symlink(dir / "vocab.txt") == std::filesystem::canonical(elsewhere.path() / "vocab.txt"));
  CHECK_FALSE(std::filesystem::is_symlink(dir / "config.json"));
  CHECK_FALSE(std::filesystem::is_symlink(dir / "other_name.json"));
}

TEST_CASE("a disk that is full for a while delays an update") {
  for (const bool at_index : {false, true}) {
    CAPTURE(at_index);
    LogLines::all().clear();
    HostCall host;
    const ModelDir model;
    const std::filesystem::path dir = model.path() / "refit";
    hexad::bridge::Checkpoint checkpoint(dir, model.path(), hexad::bridge::Seconds(20), "the.key");
    const std::string part = dir.string() + ".part/";
    const std::string full = part + (at_index ? "model.safetensors.index.json" : "model-00001.safetensors");
    std::filesystem::create_symlink("/dev/full", full);
    std::thread meanwhile([&] {
      CHECK(soon([] { return LogLines::all().has("No space left on device. It is tried again for 20 s"); }));
      std::filesystem::remove(full);
    });
    checkpoint.add(host.service(), Bucket("w").list());
    CHECK(checkpoint.finish(host.service()) == dir);
    meanwhile.join();
    CHECK(std::filesystem::file_size(dir / "model-00001.safetensors") > 24);
    CHECK(std::filesystem::exists(dir / "config.json"));
  }
}

TEST_CASE("a disk that stays full is named in time") {
  HostCall host;
  const ModelDir model;
  const std::filesystem::path dir = model.path() / "refit";
  hexad::bridge::Checkpoint checkpoint(dir, model.path(), hexad::bridge::Seconds(0.3), "the.key");
  std::filesystem::create_symlink("/dev/full", dir.string() + ".part/model-00001.safetensors");
  CHECK_THROWS_WITH_AS(checkpoint.add(host.service(), Bucket("w").list()),
                       doctest::Contains("model-00001.safetensors: No space left on device. Free space there"),
                       hexad::sdk::Error);
}

TEST_CASE("a disk that is full at the end of an update is named, with what to do") {
  for (const bool at_index : {true, false}) {
    CAPTURE(at_index);
    HostCall host;
    const ModelDir model;
    std::ofstream(model.path() / "vocab.txt") << std::string(at_index ? 1 : 9000, 'x');
    hexad::bridge::Checkpoint checkpoint(model.path() / "refit", model.path(), hexad::bridge::Seconds(0), "the.key");
    const std::string name(at_index ? 900 : 9, 'w');
    checkpoint.add(host.service(), Bucket(name).list());
    const std::string error = error_on_small_disk(500, [&] { checkpoint.finish(host.service()); });
    CHECK_MESSAGE(error.find(at_index ? "model.safetensors.index.json: " : "vocab.txt: ") != std::string::npos, error);
    CHECK(error.find("weight update: cannot write ") == 0);
    CHECK(error.find("or set the.key to a folder with room") != std::string::npos);
  }
}

TEST_SUITE_END();
