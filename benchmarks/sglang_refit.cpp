// Updates of made-up weights in this GPU's memory to attached SGLang servers, through the bridge's generator.
//
//   sglang_refit URL --model DIR [--transport ipc|nccl|gloo] [--mib 1024] [--updates 3]
//
// Built by `ninja sglang_refit`, in any build with LibTorch: the driver of CUDA, and NCCL, are looked for at run time.
// benchmarks/sglang_refit.py runs it. Byte b of weight w<i> of version v is kFactor * b + kStep * (1000 v + i), shifted
// right by 16. Prints a line for each update: {"version", "bytes", "seconds"}; exits with 1 and what went wrong.
#include <CLI/CLI.hpp>
#include <bit>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/plugin_config.hpp"
#include "modeling/refit/cuda_driver.hpp"
#include "plugins/sglang_bridge/generator.hpp"

namespace {

using Json = nlohmann::ordered_json;
using hexad::refit::CudaContext;
using hexad::refit::CudaDriver;

constexpr uint64_t kFactor = 1103515245, kStep = 12345;

struct Options {
  std::string url, model, transport = "ipc";
  int64_t mib = 1024, updates = 3;
};

struct Weight {
  std::string name;
  std::vector<int64_t> shape, offsets;
  DLDataType type{};
  size_t bytes = 0;
  CudaDriver::Pointer memory = 0;
  DLTensor tensor{};
};

// Of every type, of sizes that do not end on a multiple of 16, one that alone is more than a buffer, and `mib` of a
// model's usual matrices.
std::vector<Weight> make_weights(const Options& options) {
  const DLDataType f32{kDLFloat, 32, 1}, f16{kDLFloat, 16, 1}, bf16{kDLBfloat, 16, 1}, f8{kDLFloat8_e4m3fn, 8, 1};
  std::vector<std::pair<std::vector<int64_t>, DLDataType>> wanted = {
      {{7}, f32}, {{}, f32}, {{5, 3}, bf16}, {{2, 3, 4}, f16}, {{9}, f8}, {{151936, 512}, bf16}};
  for (int64_t mib = 0; mib < options.mib; mib += 12) wanted.emplace_back(std::vector<int64_t>{2048, 3072}, bf16);
  std::vector<Weight> weights;
  for (auto& [shape, type] : wanted) {
    Weight& weight = weights.emplace_back();
    weight.name = "w" + std::to_string(weights.size() - 1);
    weight.shape = shape, weight.offsets.assign(shape.size(), 0), weight.type = type;
    weight.bytes = static_cast<size_t>(type.bits) / 8;
    for (const int64_t size : shape) weight.bytes *= static_cast<size_t>(size);
    CudaDriver::check(CudaDriver::get().allocate(&weight.memory, weight.bytes), "cuMemAlloc");
  }
  for (Weight& weight : weights) {
    weight.tensor = {std::bit_cast<void*>(weight.memory),
                     {kDLCUDA, 0},
                     static_cast<int32_t>(weight.shape.size()),
                     weight.type,
                     weight.shape.data(),
                     nullptr,
                     0};
  }
  return weights;
}

void fill(std::vector<Weight>& weights, uint64_t version) {
  std::vector<unsigned char> host;
  for (size_t i = 0; i < weights.size(); ++i) {
    host.resize(weights[i].bytes);
    for (size_t b = 0; b < host.size(); ++b)
      host[b] = static_cast<unsigned char>((kFactor * b + kStep * (1000 * version + i)) >> 16);
    const auto from = reinterpret_cast<CudaDriver::Pointer>(host.data());
    CudaDriver::check(CudaDriver::get().copy(weights[i].memory, from, host.size(), nullptr), "cuMemcpyAsync");
    CudaDriver::check(CudaDriver::get().synchronize(nullptr), "cuStreamSynchronize");
  }
}

void run(const Options& options) {
  const CudaContext context_of_gpu(0);
  std::vector<Weight> weights = make_weights(options);
  hexad::plugin::CallContext context;
  context.device = {kDLCUDA, 0};
  hexad::plugin::Call owner(context, "sglang_refit");
  const hexad_host* const host = hexad::plugin::host_table(nullptr);
  const auto call = [&] { return hexad::sdk::Call(host, owner.handle()); };
  const hexad::plugin::PluginConfig config(
      "policy.generation", {{"model_name", options.model},
                            {"max_total_sequence_length", 64},
                            {"refit_transport", options.transport},
                            {"sglang_cfg", {{"server_urls", {options.url}}, {"control_timeout_s", 60}}}});
  hexad::sglang::Generator generator(call(), hexad::sdk::Config(call(), config.handle()));
  size_t bytes = 0;
  std::vector<hexad_weight_slice> slices;
  for (const Weight& weight : weights) {
    bytes += weight.bytes;
    slices.push_back({weight.name.c_str(), &weight.tensor, weight.shape.data(), weight.offsets.data(),
                      weight.shape.data(), static_cast<int32_t>(weight.shape.size()), weight.type});
  }
  for (int64_t version = 1; version <= options.updates; ++version) {
    fill(weights, static_cast<uint64_t>(version));
    const auto began = std::chrono::steady_clock::now();
    generator.update_begin(call(), version);
    constexpr size_t kBucket = 20;
    for (size_t at = 0; at < slices.size(); at += kBucket) {
      const auto count = static_cast<int64_t>(std::min(kBucket, slices.size() - at));
      generator.update_bucket(call(), {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, slices.data() + at, count});
    }
    generator.update_end(call(), true);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::cout << Json{{"version", version}, {"bytes", bytes}, {"seconds", seconds.count()}}.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("weights of this GPU to SGLang servers");
  app.add_option("url", options.url)->required();
  app.add_option("--model", options.model)->required();
  app.add_option("--transport", options.transport);
  app.add_option("--mib", options.mib);
  app.add_option("--updates", options.updates);
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "sglang_refit: " << error.what() << std::endl;
    return 1;
  }
}
