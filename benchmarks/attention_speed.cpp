// Packed causal attention of training on one GPU: ours (cuDNN) beside ATen's varlen FlashAttention-2, each checked
// against fp64 in the same run.
//
//   attention_speed [OUT.json]
//
// Built by `ninja attention_speed` (preset cuda). Work is counted as 4 D Hq sum(length^2) / 2 forward, 2.5 times that
// backward. Times: CUDA events, median of 20 calls after 3, over four sets of inputs in turn. Exits with 1 when a
// result is further from fp64 than the tests' bounds.
#include <c10/cuda/CUDACachingAllocator.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>

#include "benchmarks/device_time.hpp"
#include "modeling/op/cuda/attention/cudnn_graph.hpp"
#include "modeling/op/attention/packed_attention.hpp"
#include "tests/modeling/support/attention_reference.hpp"

namespace {

using namespace hexad::modeling;
using Json = nlohmann::ordered_json;
using Tensors = std::vector<at::Tensor>;

const at::Device kGpu(at::kCUDA, 0);
constexpr int kCalls = 20, kInputs = 4;
constexpr double kBound = 8e-3;  // ||got - fp64|| / ||fp64|| of every result, bf16

struct Shape {
  const char* name;
  std::vector<int64_t> lengths;
  int64_t heads, kv_heads, width;

  std::vector<int64_t> offsets() const {
    std::vector<int64_t> all = {0};
    for (const int64_t length : lengths) all.push_back(all.back() + length);
    return all;
  }
  double forward_flops() const {
    double pairs = 0;
    for (const int64_t length : lengths) pairs += double(length) * double(length) / 2;
    return 4.0 * double(width * heads) * pairs;
  }
};

// Lengths of RL samples: lognormal, mean 800, at most 4096; scaled to `tokens` in all.
std::vector<int64_t> rl_lengths(int64_t rows, int64_t tokens) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> draw(std::log(800.0) - 0.5, 1.0);
  std::vector<int64_t> lengths;
  int64_t sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += lengths.emplace_back(std::clamp<int64_t>(int64_t(draw(random)), 16, 4096));
  for (int64_t& length : lengths) length = std::min<int64_t>(4096, length * tokens / sum);
  return lengths;
}

std::vector<Shape> shapes() {
  return {{"llama8b_rl_32k", rl_lengths(43, 32768), 32, 8, 128},
          {"qwen1.5b_rl_16k", rl_lengths(21, 16384), 12, 2, 128},
          {"llama8b_4x4096", {4096, 4096, 4096, 4096}, 32, 8, 128},
          {"llama8b_8x4096", std::vector<int64_t>(8, 4096), 32, 8, 128},
          {"mha_4x4096", {4096, 4096, 4096, 4096}, 32, 32, 128},
          {"width256_4x4096", {4096, 4096, 4096, 4096}, 16, 8, 256}};
}

// q, k, v and the gradient of the output; q, k, v are parts of one projection.
Tensors make_inputs(const Shape& s) {
  const int64_t tokens = s.offsets().back();
  const at::Tensor all =
      at::randn({tokens, s.heads + 2 * s.kv_heads, s.width}, at::TensorOptions(kGpu).dtype(at::kBFloat16));
  return {all.narrow(1, 0, s.heads).detach().requires_grad_(),
          all.narrow(1, s.heads, s.kv_heads).detach().requires_grad_(),
          all.narrow(1, s.heads + s.kv_heads, s.kv_heads).detach().requires_grad_(),
          at::randn({tokens, s.heads, s.width}, all.options())};
}

double device_ms(const std::function<void(int)>& call) { return benchmarks::device_ms(call, kInputs); }

// Microseconds until a call returns, mean over calls that the device's queue holds.
double host_us(const std::function<void(int)>& call) {
  c10::cuda::device_synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call(i % kInputs);
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  c10::cuda::device_synchronize();
  return time.count() / kCalls;
}

// Bytes allocated at the peak of a call beyond those before it.
double peak_gib(const std::function<void(int)>& call) {
  using namespace c10::cuda::CUDACachingAllocator;
  const auto bytes = [](const auto& stats) { return stats.allocated_bytes[0]; };
  resetPeakStats(0);
  const int64_t before = bytes(getDeviceStats(0)).current;
  call(0);
  return double(bytes(getDeviceStats(0)).peak - before) / double(int64_t{1} << 30);
}

Json timing(const std::function<void(int)>& call, double flops) {
  const double ms = device_ms(call);
  return {{"ms", ms}, {"tflops", flops / ms / 1e9}, {"host_us", host_us(call)}, {"peak_gib", peak_gib(call)}};
}

double worst_error(const Tensors& got, const AttentionReference& want) {
  double worst = 0;
  const at::Tensor* const wanted[] = {&want.out, &want.grad_q, &want.grad_k, &want.grad_v};
  for (size_t i = 0; i < 4; ++i) {
    const double error = attention_error(got[i], *wanted[i]).whole;
    if (!(error <= worst)) worst = error;  // a NaN stays
  }
  return worst;
}

Json measure(const Shape& s, const std::vector<Tensors>& in, const PackedLayout& layout, AttentionKernel kernel,
             const AttentionReference& want) {
  const auto attend = [&](int i) { return packed_attention(in[i][0], in[i][1], in[i][2], layout, 0, kernel); };
  const auto differentiate = [&](int i, const at::Tensor& out) {
    return torch::autograd::grad({out}, {in[i][0], in[i][1], in[i][2]}, {in[i][3]}, /*retain_graph=*/true);
  };
  const auto begin = std::chrono::steady_clock::now();
  Tensors outs = {attend(0)};
  Tensors got = differentiate(0, outs[0]);
  c10::cuda::device_synchronize();
  const std::chrono::duration<double> first = std::chrono::steady_clock::now() - begin;
  got.insert(got.begin(), outs[0].detach());
  for (int i = 1; i < kInputs; ++i) outs.push_back(attend(i));
  return {{"error", worst_error(got, want)},
          {"first_call_s", first.count()},
          {"forward", timing([&](int i) { attend(i); }, s.forward_flops())},
          {"backward", timing([&](int i) { differentiate(i, outs[i]); }, 2.5 * s.forward_flops())}};
}

// The bare graph calls under other bounds: what rounding rows up to a power of two costs.
Json choices(const Shape& s) {
  const Tensors in = make_inputs(s);
  const std::vector<int64_t> offsets = s.offsets();
  const RowBounds bounds = bucketed_bounds(offsets);
  const at::Tensor q = in[0].detach(), k = in[1].detach(), v = in[2].detach();
  const at::Tensor out = at::empty_like(in[3]), sums = at::empty({q.size(0), q.size(1)}, q.options().dtype(at::kFloat));
  const at::Tensor grad_q = at::empty_strided(q.sizes(), q.strides(), q.options());
  const at::Tensor grad_k = at::empty(k.sizes(), k.options()), grad_v = at::empty(v.sizes(), v.options());
  Json all = Json::array();
  for (const int64_t count : {int64_t(s.lengths.size()), bounds.rows, 2 * bounds.rows}) {
    const RaggedRows rows(offsets, {count, bounds.length, bounds.tokens}, kGpu);
    const auto forward = [&](int) { cuda::run_cudnn_attention({q, k, v, out, sums}, rows, 0); };
    const auto backward = [&](int) {
      cuda::run_cudnn_attention({q, k, v, out, sums, in[3], grad_q, grad_k, grad_v}, rows, 0);
    };
    all.push_back({{"rows", count},
                   {"forward", timing(forward, s.forward_flops())},
                   {"backward", timing(backward, 2.5 * s.forward_flops())}});
  }
  return all;
}

Json run(const Shape& s) {
  at::manual_seed(1);
  std::vector<Tensors> in;
  for (int i = 0; i < kInputs; ++i) in.push_back(make_inputs(s));
  const std::vector<int64_t> offsets = s.offsets();
  const PackedLayout layout = packed_layout(at::tensor(offsets), kGpu);
  const AttentionReference want = attention_reference(in[0][0], in[0][1], in[0][2], in[0][3], offsets, 0);
  Json row = {
      {"shape", s.name}, {"rows", s.lengths.size()}, {"tokens", offsets.back()}, {"longest", layout.max_length}};
  row["layout_host_us"] = host_us([&](int) { packed_layout(at::tensor(offsets), kGpu); });
  row["cudnn"] = measure(s, in, layout, AttentionKernel::cudnn, want);
  row["flash"] = measure(s, in, layout, AttentionKernel::flash, want);
  return row;
}

void print(const Json& row) {
  std::printf("%s: %d rows, %d tokens, longest %d; layout %.0f us of the host\n",
              row["shape"].get<std::string>().c_str(), row["rows"].get<int>(), row["tokens"].get<int>(),
              row["longest"].get<int>(), row["layout_host_us"].get<double>());
  for (const char* kernel : {"cudnn", "flash"}) {
    const Json &r = row[kernel], &f = r["forward"], &b = r["backward"];
    std::printf("  %-6s", kernel);
    for (const Json* pass : {&f, &b}) {
      std::printf("  %6.3f ms %4.0f TFLOP/s host %5.1f us %5.2f GiB", (*pass)["ms"].get<double>(),
                  (*pass)["tflops"].get<double>(), (*pass)["host_us"].get<double>(), (*pass)["peak_gib"].get<double>());
    }
    std::printf("  first call %.1f s  error %.2e\n", r["first_call_s"].get<double>(), r["error"].get<double>());
  }
}

void print_choices(const Json& all) {
  for (const Json& c : all) {
    std::printf("graph of %3lld rows", static_cast<long long>(c["rows"].get<int64_t>()));
    for (const char* pass : {"forward", "backward"}) {
      std::printf("  %s %4.0f TFLOP/s host %4.1f us %.2f GiB", pass, c[pass]["tflops"].get<double>(),
                  c[pass]["host_us"].get<double>(), c[pass]["peak_gib"].get<double>());
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Json report = {{"device", at::cuda::getCurrentDeviceProperties()->name},
                 {"cudnn", at::globalContext().versionCuDNN()},
                 {"shapes", Json::array()}};
  const auto save = [&] {
    std::fflush(stdout);
    if (argc > 1) std::ofstream(argv[1]) << report.dump(1) << '\n';
  };
  bool right = true;
  for (const Shape& shape : shapes()) {
    const Json row = run(shape);
    print(row);
    for (const char* kernel : {"cudnn", "flash"}) right &= row[kernel]["error"].get<double>() <= kBound;
    report["shapes"].push_back(row);
    save();
  }
  report["choices"] = choices(shapes()[0]);
  print_choices(report["choices"]);
  save();
  if (!right) std::fprintf(stderr, "a result is further than %g from fp64\n", kBound);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "attention_speed: %s\n", error.what());
  return 2;
}
