// What servers are sent where vllm_cfg.precision is fp8: names, types, shapes and bytes, over disk and from GPU to GPU.
#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <span>

#include "plugins/vllm_bridge/fp8/cast.hpp"
#include "tests/plugins/vllm_bridge/fp8/support.hpp"

using namespace vllm_test;
namespace fp8 = hexad::vllm::fp8;

namespace {

constexpr const char* kLinear = "model.layers.0.mlp.down_proj.weight";
constexpr const char* kNorm = "model.norm.weight";
constexpr int64_t kRows = 256, kColumns = 384;

// One bucket of two weights, of which one is quantised.
class Weights {
 public:
  explicit Weights(float value) : norm_(kColumns, value) {
    for (int64_t i = 0; i < kRows * kColumns; ++i)
      linear_.push_back(value * static_cast<float>(std::sin(static_cast<double>(i))));
  }
  void send(Harness& bridge, DLDevice device, int64_t version) {
    DLTensor linear{linear_.data(), device, 2, {kDLFloat, 32, 1}, shape_, nullptr, 0};
    DLTensor norm{norm_.data(), device, 1, {kDLFloat, 32, 1}, shape_ + 1, nullptr, 0};
    const hexad_weight_slice slices[] = {{kLinear, &linear, shape_, offsets_, shape_, 2, linear.dtype},
                                         {kNorm, &norm, shape_ + 1, offsets_, shape_ + 1, 1, norm.dtype}};
    const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, slices, 2};
    bridge->update_begin(bridge.service(), version);
    bridge->update_bucket(bridge.service(), bucket);
    bridge->update_end(bridge.service(), true);
  }
  // What is to arrive, by name.
  std::map<std::string, std::string> wanted(bool mx) const {
    std::vector<uint8_t> values(linear_.size()), exponents(linear_.size() / 32);
    std::vector<float> scales(6);
    const fp8::Matrix x{reinterpret_cast<const std::byte*>(linear_.data()), {kDLFloat, 32, 1}, kRows, kColumns};
    mx ? fp8::cast_strips(x, values, exponents) : fp8::cast_blocks(x, false, values, scales);
    const auto text = [](const auto& list) {
      return std::string(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]);
    };
    return {{kLinear, text(values)},
            {std::string(kLinear) + (mx ? "_scale" : "_scale_inv"), mx ? text(exponents) : text(scales)},
            {kNorm, text(norm_)}};
  }

 private:
  std::vector<float> linear_, norm_;
  int64_t shape_[2] = {kRows, kColumns}, offsets_[2] = {0, 0};
};

struct Stored {
  Json header;
  std::map<std::string, std::string> bytes;
};
Stored stored_in(const std::filesystem::path& dir) {
  std::ifstream file(dir / "model-00001.safetensors", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  uint64_t size = 0;
  std::memcpy(&size, all.data(), 8);
  Stored result{Json::parse(all.substr(8, size)), {}};
  for (const auto& [name, entry] : result.header.items()) {
    const auto begin = entry.at("data_offsets")[0].get<size_t>(), end = entry.at("data_offsets")[1].get<size_t>();
    result.bytes[name] = all.substr(8 + size + begin, end - begin);
  }
  return result;
}

FakeVllm::Options offers(const char* quantization, const char* transfer = "") {
  FakeVllm::Options options;
  options.quantization = quantization, options.weight_transfer = transfer;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("over disk, servers load a checkpoint in FP8 with scales, what is not a linear as it was") {
  for (const bool mx : {false, true}) {
    CAPTURE(mx);
    const Fp8Model model(tiny_llama());
    const ModelDir scratch;
    const FakeVllm server(offers(mx ? "modelopt_mxfp8" : "fp8"));
    Harness bridge({&server}, {{"precision", "fp8"}, {"is_mx", mx}, {"refit_dir", scratch.path().string()}},
                   {{"model_name", model.path()}});
    REQUIRE(
        soon([&] { return LogLines::all().has("it waits for the first weight update: the model's own folder has"); }));
    CHECK(server.count("POST /collective_rpc") == 0);
    Weights weights(0.5f);
    weights.send(bridge, {kDLCPU, 0}, 1);
    std::filesystem::path dir;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path()))
      if (entry.path().filename() == "version_1") dir = entry.path();
    const Stored stored = stored_in(dir);
    CHECK(stored.bytes == weights.wanted(mx));
    const std::string scale = std::string(kLinear) + (mx ? "_scale" : "_scale_inv");
    CHECK(stored.header.at(kLinear).at("dtype") == "F8_E4M3");
    CHECK(stored.header.at(kLinear).at("shape") == Json{kRows, kColumns});
    CHECK(stored.header.at(scale).at("dtype") == (mx ? "U8" : "F32"));
    CHECK(stored.header.at(scale).at("shape") == (mx ? Json{kRows, kColumns / 32} : Json{2, 3}));
    CHECK(stored.header.at(kNorm).at("dtype") == "F32");
    for (const auto& [name, entry] : stored.header.items())
      if (entry.at("dtype") == "F32") CHECK_MESSAGE(entry.at("data_offsets")[0].get<int64_t>() % 4 == 0, name);
    check_sample(Wish{.id = 3}, bridge.run({Wish{.id = 3}}).at(3), HEXAD_FINISH_LENGTH, server.weights());
  }
}

TEST_CASE("from GPU to GPU the same bytes arrive, and each server's copy is one of them") {
  static void* const library = ::dlopen(HEXAD_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(library != nullptr);
  const Fp8Model model(tiny_llama());
  const FakeVllm server(offers("fp8", "ipc"));
  Harness bridge(Harness::OnGpu{}, {&server}, {{"model_name", model.path()}, {"refit_transport", "ipc"}},
                 {{"precision", "fp8"}});
  for (const float value : {0.5f, 2.0f}) {
    Weights weights(value);
    weights.send(bridge, {kDLCUDA, 0}, value == 0.5f ? 1 : 2);
    uint64_t hash = 0;
    for (const auto& [name, bytes] : weights.wanted(false)) hash = add_weight(hash, name, bytes);
    CHECK(server.weights() == hash);
  }
}

TEST_CASE("a server of another form, or one too old for it, gets no weights and no requests") {
  const Fp8Model model(tiny_llama());
  FakeVllm::Options old = offers("fp8");
  old.version = "0.23.1";
  const auto complaint = [&](const FakeVllm::Options& options, const std::string& part) {
    const FakeVllm server(options);
    const Harness bridge({&server}, {{"precision", "fp8"}}, {{"model_name", model.path()}});
    CHECK_MESSAGE(soon([&] { return LogLines::all().has(part); }), LogLines::all().text());
  };
  complaint(offers("none"),
            "its quantization is none, and vllm_cfg.precision is fp8. Start it with --quantization fp8");
  complaint(old, "vLLM 0.23.1 is older than 0.24, the oldest that is given weights in FP8 here");
}

TEST_CASE("a weight that has no FP8 form is refused by its name, and the update with it") {
  const Fp8Model model(tiny_llama());
  const FakeVllm server(offers("fp8"));
  Harness bridge({&server}, {{"precision", "fp8"}}, {{"model_name", model.path()}});
  std::vector<double> data(12);
  int64_t shape[2] = {3, 4}, offsets[2] = {0, 0};
  DLTensor tensor{data.data(), {kDLCPU, 0}, 2, {kDLFloat, 64, 1}, shape, nullptr, 0};
  const hexad_weight_slice slice{kLinear, &tensor, shape, offsets, shape, 2, tensor.dtype};
  const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1};
  bridge->update_begin(bridge.service(), 1);
  CHECK_THROWS_WITH_AS(bridge->update_bucket(bridge.service(), bucket),
                       doctest::Contains("model.layers.0.mlp.down_proj.weight is to be quantised to FP8, and has 2 "
                                         "dimensions of a type of 64 bits"),
                       hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(bridge->update_end(bridge.service(), true), doctest::Contains("a bucket of it was refused"),
                       hexad::sdk::Error);
}

TEST_CASE("servers of one's own start with the first update, whatever the model's folder holds") {
  const Fp8Model model(tiny_llama());
  Harness bridge(Harness::Spawn{{"/bin/sh", "-c", "echo \"$@\" >&2; sleep 1000", "vllm"}}, {{"precision", "fp8"}},
                 {{"model_name", model.path()}});
  CHECK(LogLines::all().has("the model has no weights in FP8: its vLLM servers start with those of the first update"));
  CHECK(!LogLines::all().has("starts on port"));
  Weights(1.0f).send(bridge, {kDLCPU, 0}, 1);
  CHECK(LogLines::all().has("starts on port"));
  CHECK(LogLines::all().has("/version_1 (process"));
}

TEST_SUITE_END();
