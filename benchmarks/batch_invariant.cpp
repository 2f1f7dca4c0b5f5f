// What the batch-invariant kernels cost beside the usual ones: products of decoding and of training beside cuBLAS, and
// the attention of packed rows beside cuDNN.
//
//   batch_invariant [OUT.json] [--quick]
//
// Built by `ninja batch_invariant` (preset cuda). In the same run rows of each product are compared, bit for bit, with
// those of the largest. Exits with 1 when one differs.
#include <ATen/Functions.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "benchmarks/device_time.hpp"
#include "modeling/op/cuda/batch_invariant.hpp"

namespace {

using Json = nlohmann::ordered_json;
using namespace hexad::modeling;

const at::Device kGpu(at::kCUDA, 0);

struct Shape {
  const char* name;
  int64_t in, out;
  bool wide;  // results in fp32
};
constexpr Shape kShapes[] = {{"llama8b_qkv", 4096, 6144, false},      {"llama8b_output", 4096, 4096, false},
                             {"llama8b_gate_up", 4096, 28672, false}, {"llama8b_down", 14336, 4096, false},
                             {"llama8b_head", 4096, 128256, true},    {"qwen1.5b_gate_up", 1536, 17920, false},
                             {"qwen1.5b_down", 8960, 1536, false}};

at::Tensor random(at::IntArrayRef shape) { return at::randn(shape, at::TensorOptions(kGpu).dtype(at::kBFloat16)); }

Json product(const Shape& shape, int64_t most, bool& good) {
  const int64_t largest = shape.wide ? std::min<int64_t>(most, 4096) : most;
  // Two weights, so that the small ones are not in the cache.
  const at::Tensor weights[] = {random({shape.out, shape.in}), random({shape.out, shape.in})};
  const at::Tensor x = random({largest, shape.in});
  const at::Tensor out = at::empty({largest, shape.out}, x.options().dtype(shape.wide ? at::kFloat : at::kBFloat16));
  const at::Tensor usual = at::empty_like(out);
  at::Tensor want;
  Json rows = Json::array();
  for (int64_t count = largest; count >= 1; count /= count > 512 ? 4 : 2) {
    const at::Tensor input = x.slice(0, 0, count);
    at::Tensor ours = out.slice(0, 0, count), cublas = usual.slice(0, 0, count);
    const double own_ms = benchmarks::device_ms([&](int i) { cuda::invariant_linear_out(ours, input, weights[i]); }, 2);
    const double usual_ms = benchmarks::device_ms(
        [&](int i) {
          shape.wide ? at::mm_out(cublas, input, weights[i].t(), at::kFloat)
                     : at::mm_out(cublas, input, weights[i].t());
        },
        2);
    cuda::invariant_linear_out(ours, input, weights[0]);
    if (!want.defined()) want = ours.clone();
    const bool same = at::equal(ours, want.slice(0, 0, count));
    good = good && same;
    const double flops = 2.0 * double(count) * double(shape.in) * double(shape.out);
    rows.push_back({{"rows", count}, {"ms", own_ms}, {"cublas_ms", usual_ms}, {"same_bits", same}});
    std::printf("%-18s %6lld rows  %8.4f ms %5.0f TFLOP/s %5.2f TB/s  cuBLAS %8.4f ms  %.2f of its speed%s\n",
                shape.name, static_cast<long long>(count), own_ms, flops / own_ms / 1e9,
                2e-9 * double(shape.in * shape.out) / own_ms, usual_ms, usual_ms / own_ms, same ? "" : "  OTHER BITS");
    std::fflush(stdout);
  }
  return {{"shape", shape.name}, {"in", shape.in}, {"out", shape.out}, {"rows", rows}};
}

Json attention(int64_t length, int64_t sequences) {
  const at::NoGradGuard no_grad;
  const int64_t heads = 32, kv_heads = 8, dim = 128;
  const at::Tensor all = random({length * sequences, heads + 2 * kv_heads, dim});
  const at::Tensor q = all.narrow(1, 0, heads), k = all.narrow(1, heads, kv_heads),
                   v = all.narrow(1, heads + kv_heads, kv_heads);
  const PackedLayout layout = packed_layout(at::arange(sequences + 1, at::kLong) * length, kGpu);
  const auto ms = [&](AttentionKernel kernel) {
    return benchmarks::device_ms([&](int) { packed_attention(q, k, v, layout, 0, kernel); }, 1);
  };
  const double own = ms(AttentionKernel::batch_invariant), cudnn = ms(AttentionKernel::cudnn);
  const double flops = 2.0 * double(length) * double(length) * double(sequences * heads * dim);
  std::printf("attention %lld x %lld  %8.3f ms %5.0f TFLOP/s  cuDNN %8.3f ms\n", static_cast<long long>(sequences),
              static_cast<long long>(length), own, flops / own / 1e9, cudnn);
  return {{"length", length}, {"sequences", sequences}, {"ms", own}, {"cudnn_ms", cudnn}};
}

}  // namespace

int main(int argc, char** argv) {
  const char* file = nullptr;
  bool quick = false, good = true;
  for (int i = 1; i < argc; ++i) std::strcmp(argv[i], "--quick") == 0 ? void(quick = true) : void(file = argv[i]);
  Json result = {{"products", Json::array()}, {"attention", Json::array()}};
  for (const Shape& shape : kShapes) result["products"].push_back(product(shape, quick ? 512 : 16384, good));
  for (const int64_t length : {512, 1024, 4096}) result["attention"].push_back(attention(length, 32768 / length));
  result["good"] = good;
  if (file) std::ofstream(file) << result.dump(1);
  return good ? 0 : 1;
}
