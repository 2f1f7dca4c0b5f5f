// The pickle by which weights come to SGLang over CUDA IPC, read by SGLang's own classes on this CPU:
// sglang_cpu/unpickle.py. `make test-peers`. HEXAD_SGLANG_PYTHON: the interpreter of the environment that
// tools/setup_peers.sh makes.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plugins/server_bridge/refit/base64.hpp"
#include "plugins/sglang_bridge/refit/pickle.hpp"
#include "tests/peers/support/interpreter.hpp"

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// What SGLang makes of it: [[name, type, shape, sha256]].
Json unpickled(const Json& asked) {
  const std::string python = peers_test::interpreter("HEXAD_SGLANG_PYTHON");
  const fs::path here = fs::path(std::getenv("HEXAD_SOURCE_DIR")) / "tests" / "peers" / "sglang_cpu";
  std::string pattern = (fs::temp_directory_path() / "hexad-pickle-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const fs::path folder = pattern;
  std::ofstream(folder / "in.json") << asked.dump();
  const std::string command = "PYTHONPATH='" + here.string() + "' SGLANG_USE_CPU_ENGINE=1 '" + python +
                              "' -B -W ignore '" + (here / "unpickle.py").string() + "' < '" +
                              (folder / "in.json").string() + "' > '" + (folder / "out.json").string() + "'";
  CHECK(std::system(command.c_str()) == 0);
  std::ifstream file(folder / "out.json");
  Json read = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  fs::remove_all(folder);
  return read;
}

}  // namespace

TEST_CASE("SGLang's own classes take a bucket over CUDA IPC apart as it was put together") {
  hexad::bridge::SharedMemory memory{.uuid = "00112233-4455-6677-8899-aabbccddeeff", .bytes = 1024};
  for (size_t i = 0; i < memory.handle.size(); ++i) memory.handle[i] = static_cast<std::byte>(3 * i + 1);
  struct Part {
    const char* name;
    std::vector<int64_t> shape;
    DLDataType type;
    const char* torch;
    int64_t bytes;
    const char* sha256;  // of bytes that begin where the one before ends: i % 251
  };
  const std::vector<Part> parts = {{"model.layers.0.weight",
                                    {2, 3},
                                    {kDLFloat, 32, 1},
                                    "torch.float32",
                                    24,
                                    "1d64add2a6388367c9bc2d1f1b384b069a6ef382cdaaa89771dd103e28613a25"},
                                   {"model.scalar",
                                    {},
                                    {kDLFloat, 32, 1},
                                    "torch.float32",
                                    4,
                                    "5721b0fa81588120a002c28914c1fef3f18ae8513ec12e08078f492bb769cf98"},
                                   {"model.größe",
                                    {70, 5},
                                    {kDLBfloat, 16, 1},
                                    "torch.bfloat16",
                                    700,
                                    "4abd1485e458263989646fa13076ba298749ff6525a1d3e94761f7a059de4342"},
                                   {"model.half",
                                    {1, 3, 1},
                                    {kDLFloat, 16, 1},
                                    "torch.float16",
                                    6,
                                    "10024f898bc945e8d28aef8d585b8c0050e1e357a8a2d99356fca2b9131dce42"},
                                   {"model.small",
                                    {9},
                                    {kDLFloat8_e4m3fn, 8, 1},
                                    "torch.float8_e4m3fn",
                                    9,
                                    "aca754dbe4e7c46cc63a73320d14bcd2a3d438d7de52f003854b08ede286fd7e"}};
  std::vector<DLTensor> tensors(parts.size());
  std::vector<hexad_weight_slice> slices;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < parts.size(); ++i) {
    tensors[i].dtype = parts[i].type;
    slices.push_back({parts[i].name, &tensors[i], parts[i].shape.data(), nullptr, parts[i].shape.data(),
                      static_cast<int32_t>(parts[i].shape.size()), parts[i].type});
    sizes.push_back(parts[i].bytes);
  }
  std::vector<const hexad_weight_slice*> weights;
  for (const hexad_weight_slice& slice : slices) weights.push_back(&slice);
  const std::string pickle = hexad::sglang::bucket_pickle(memory, weights, sizes);
  const std::string handle(reinterpret_cast<const char*>(memory.handle.data()), memory.handle.size());
  const Json loaded = unpickled({{"payload", hexad::bridge::base64(pickle)},
                                 {"uuid", memory.uuid},
                                 {"handle", hexad::bridge::base64(handle)},
                                 {"bytes", memory.bytes}});
  REQUIRE(loaded.size() == parts.size());
  for (size_t i = 0; i < parts.size(); ++i)
    CHECK(loaded[i] == Json::array({parts[i].name, parts[i].torch, parts[i].shape, parts[i].sha256}));
}
