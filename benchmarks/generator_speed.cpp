// How fast the native generator samples on this CPU, beside what the machine could do at best.
//
//   generator_speed MODEL_DIR [BATCH ...]     groups of 8, prompts of 40 tokens, 16 new tokens each; fp32
//
// Built by `ninja generator_speed`. The floor is the larger of two times: multiply-adds of the weights at the machine's
// measured fp32 peak, and one reading of the weights a pass at its measured memory bandwidth.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/plugin_config.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "plugins/native/cpu/gemm.hpp"
#include "plugins/native/generator.hpp"

namespace {

using namespace hexad;

constexpr int64_t kPrompt = 40, kNewTokens = 16, kGroup = 8;
constexpr int kRounds = 3;

// Processor time over the number of threads, so that a busy machine does not count (threads that wait must sleep:
// OMP_WAIT_POLICY=passive).
double best_seconds(const auto& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, double(std::clock() - start) / CLOCKS_PER_SEC / at::get_num_threads());
  }
  return best;
}

// A product whose operands stay in the second-level cache.
double peak_flops() {
  const int64_t rows = 192, k = 512, n = 512, repeats = 200;
  const at::Tensor x = at::randn({rows, k}), weight = at::randn({native::cpu::packed_elements(n, k)});
  const at::Tensor out = at::empty({rows, n});
  const native::cpu::Product product[] = {{weight.const_data_ptr(), nullptr, out.data_ptr<float>(), n, false}};
  const double own = best_seconds([&] {
    for (int64_t i = 0; i < repeats; ++i) native::cpu::multiply<float>(x.const_data_ptr<float>(), rows, k, product);
  });
  const at::Tensor a = at::randn({1536, 1536}), b = at::randn({1536, 1536});
  const double library = best_seconds([&] { at::mm(a, b); });
  return std::max(2.0 * double(rows * k * n * repeats) / own, 2.0 * 1536 * 1536 * 1536 / library);
}

double read_bandwidth() {
  const at::Tensor data = at::ones({int64_t{1} << 28});
  const double seconds = best_seconds([&] { data.sum(); });
  return double(data.nbytes()) / seconds;
}

struct Cost {
  double layer_parameters = 0, head_parameters = 0;
  double floor(double batch, double flops, double bandwidth) const {
    const double prompts = batch / kGroup * kPrompt, decoded = batch * (kNewTokens - 1);
    const double work = 2 * (layer_parameters * (prompts + decoded) + head_parameters * (decoded + batch / kGroup));
    const double bytes = 4 * kNewTokens * (layer_parameters + head_parameters);
    return std::max(work / flops, bytes / bandwidth);
  }
};

double generate(native::Generator& generator, const sdk::Call& call, int64_t batch, int64_t vocab) {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<hexad_request> requests;
  for (int64_t i = 0; i < batch; ++i) {
    if (i % kGroup == 0) {
      std::vector<int32_t>& prompt = prompts.emplace_back();
      for (int64_t t = 0; t < kPrompt; ++t) prompt.push_back(int32_t((i * 7919 + t * 104729 + 17) % vocab));
    }
  }
  for (int64_t i = 0; i < batch; ++i) {
    hexad_request request{};
    request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
    request.flags = HEXAD_REQUEST_IGNORE_EOS;
    request.id = request.seed = uint64_t(i);
    request.group = uint64_t(i / kGroup);
    request.prompt = prompts[i / kGroup].data();
    request.prompt_size = kPrompt;
    request.max_new_tokens = kNewTokens;
    request.temperature = request.top_p = 1;
    requests.push_back(request);
  }
  std::vector<const hexad_request*> pointers;
  for (const hexad_request& request : requests) pointers.push_back(&request);
  return best_seconds([&] {
    generator.flush_cache(call);
    generator.submit(call, pointers);
    std::vector<const hexad_completion*> events(256);
    for (int64_t ended = 0; ended < batch;) {
      const int64_t count = generator.poll(call, events, 1000);
      generator.release({events.data(), size_t(count)});
      ended += count;
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: generator_speed MODEL_DIR [BATCH ...]\n");
    return 2;
  }
  std::vector<int64_t> batches;
  for (int i = 2; i < argc; ++i) batches.push_back(std::atoll(argv[i]));
  if (batches.empty()) batches = {8, 64, 128};

  const plugin::CallContext context;
  plugin::Call record(context, "generator_speed");
  const sdk::Call call(plugin::host_table(nullptr), record.handle());
  const plugin::PluginConfig config("policy.generation", {{"model_name", argv[1]}, {"max_total_sequence_length", 64}});
  native::Generator generator(call, sdk::Config(call, config.handle()));

  const modeling::ModelConfig model = modeling::load_model_config(argv[1]);
  Cost cost;
  for (const modeling::WeightInfo& info : modeling::weight_table(model)) {
    if (info.shape.size() != 2) continue;
    const double count = double(info.shape[0]) * double(info.shape[1]);
    if (info.hf_name == modeling::head_weight_name(model)) {
      cost.head_parameters = count;
    } else if (info.hf_name != modeling::kEmbeddingName) {
      cost.layer_parameters += count;
    }
  }
  const double flops = peak_flops(), bandwidth = read_bandwidth();
  std::printf("%d threads: %.0f GFLOP/s fp32, %.1f GB/s\n", at::get_num_threads(), flops / 1e9, bandwidth / 1e9);
  std::fflush(stdout);
  for (const int64_t batch : batches) {
    const double seconds = generate(generator, call, batch, model.vocab_size);
    const double floor = cost.floor(double(batch), flops, bandwidth);
    std::printf("batch %4lld: %.2f s, %.0f tokens/s; floor %.2f s, %.0f %% of the floor's speed\n",
                static_cast<long long>(batch), seconds, double(batch * kNewTokens) / seconds, floor,
                100 * floor / seconds);
    std::fflush(stdout);
  }
  return 0;
}
