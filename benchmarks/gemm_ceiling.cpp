// What this GPU's libraries reach on the products of the models that the other benchmarks run: the ceiling of training.
//
//   gemm_ceiling [OUT.json] [--tokens 16384]
//
// Built by `ninja gemm_ceiling` (preset cuda). bf16 through cuBLAS (forward y = x w^T, gradients of x and of w) and fp8
// (e4m3, one scale a tensor or, as rollouts have it, one a row of both factors; products alone, without casts) through
// cuBLASLt; each result is checked against fp64 on a part of its rows in the same run. Exits with 1 when one is further
// away than its rounding allows. A decoding pass has as many tokens as sequences run: --tokens 512.
#include <ATen/Functions.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "benchmarks/device_time.hpp"

namespace {

using Json = nlohmann::ordered_json;

const at::Device kGpu(at::kCUDA, 0);
constexpr int kInputs = 3;
constexpr double kBf16Bound = 3e-3, kFp8Bound = 1e-2;  // one rounding to bf16; sums of fewer bits in fp8
constexpr int64_t kChecked = 64;                       // rows of each result

struct Shape {
  const char* name;
  int64_t in, out;
};
constexpr Shape kShapes[] = {
    {"llama8b_qkv", 4096, 6144},       {"llama8b_output", 4096, 4096}, {"llama8b_gate_up", 4096, 28672},
    {"llama8b_down", 14336, 4096},     {"llama8b_head", 4096, 128256}, {"qwen1.5b_qkv", 1536, 2048},
    {"qwen1.5b_gate_up", 1536, 17920}, {"qwen1.5b_down", 8960, 1536},  {"square_8192", 8192, 8192}};

// a [M, K] times b [N, K]^T.
struct Product {
  const char* name;
  std::vector<at::Tensor> a, b;
};

double error(const at::Tensor& got, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor want = at::mm(a.slice(0, 0, kChecked).to(at::kDouble), b.to(at::kDouble).t());
  return ((got.slice(0, 0, kChecked).to(at::kDouble) - want).norm() / want.norm()).item<double>();
}

enum class Kind { bf16, fp8, fp8_rows };

const char* name_of(Kind kind) { return kind == Kind::bf16 ? "bf16" : kind == Kind::fp8 ? "fp8" : "fp8_rows"; }

Json measure(const Product& p, Kind kind, bool& good) {
  const bool fp8 = kind != Kind::bf16;
  const double flops = 2.0 * double(p.a[0].size(0)) * double(p.a[0].size(1)) * double(p.b[0].size(0));
  std::vector<at::Tensor> a = p.a, b = p.b;
  const bool rows = kind == Kind::fp8_rows;
  const auto scales = [&](at::IntArrayRef shape) { return at::ones(shape, at::TensorOptions(kGpu).dtype(at::kFloat)); };
  const at::Tensor scale_a = rows ? scales({a[0].size(0), 1}) : scales({});
  const at::Tensor scale_b = rows ? scales({1, b[0].size(0)}) : scales({});
  if (fp8) {  // both factors have to be contiguous along the sum
    for (at::Tensor& x : a) x = x.contiguous().to(at::kFloat8_e4m3fn);
    for (at::Tensor& x : b) x = x.contiguous().to(at::kFloat8_e4m3fn);
  }
  at::Tensor out;
  const auto call = [&](int i) {
    out = fp8 ? at::_scaled_mm(a[i], b[i].t(), scale_a, scale_b, {}, {}, at::kBFloat16, /*use_fast_accum=*/true)
              : at::mm(a[i], b[i].t());
  };
  call(0);
  const double off = error(out, a[0].to(at::kFloat), b[0].to(at::kFloat));
  good = good && off < (fp8 ? kFp8Bound : kBf16Bound);
  const double ms = benchmarks::device_ms(call, kInputs);
  return {{"ms", ms}, {"tflops", flops / ms / 1e9}, {"error", off}};
}

Json run(const Shape& shape, int64_t tokens, bool& good) {
  Product forward{"forward", {}, {}}, by_x{"grad_x", {}, {}}, by_w{"grad_w", {}, {}};
  for (int i = 0; i < kInputs; ++i) {
    const auto options = at::TensorOptions(kGpu).dtype(at::kBFloat16);
    const at::Tensor x = at::randn({tokens, shape.in}, options), w = at::randn({shape.out, shape.in}, options),
                     g = at::randn({tokens, shape.out}, options);
    forward.a.push_back(x), forward.b.push_back(w);
    by_x.a.push_back(g), by_x.b.push_back(w.t());
    by_w.a.push_back(g.t()), by_w.b.push_back(x.t());
  }
  Json row = {{"shape", shape.name}, {"tokens", tokens}, {"in", shape.in}, {"out", shape.out}};
  std::printf("%-18s", shape.name);
  for (const Product* product : {&forward, &by_x, &by_w}) {
    for (const Kind kind : {Kind::bf16, Kind::fp8, Kind::fp8_rows}) {
      const Json result = row[product->name][name_of(kind)] = measure(*product, kind, good);
      std::printf("  %s %s %5.0f", product->name, name_of(kind), result["tflops"].get<double>());
    }
  }
  std::printf("\n");
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t tokens = 16384;
  const char* path = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--tokens") && i + 1 < argc) {
      tokens = std::strtoll(argv[++i], nullptr, 10);
    } else {
      path = argv[i];
    }
  }
  at::manual_seed(1);
  bool good = true;
  Json rows = Json::array();
  std::printf("TFLOP/s\n");
  for (const Shape& shape : kShapes) rows.push_back(run(shape, tokens, good));
  if (path) std::ofstream(path) << Json{{"good", good}, {"rows", rows}}.dump(1) << "\n";
  return good ? 0 : 1;
}
