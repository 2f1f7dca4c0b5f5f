// The linears of one layer of Llama-8B in training, bf16 beside FP8 scaled by tensor and by strips and blocks of 128,
// casts counted, on one GPU.
//
//   fp8_linear [OUT.json] [TOKENS]
//
// Built by `ninja fp8_linear` (preset cuda). 16384 tokens unless said. Work is 6 T K N: forward, gradient of the input,
// gradient of the weights added to fp32 sums, whole or as the parts of four FSDP ranks. Times: CUDA events, median of
// 20 calls after 3, over four sets of inputs in turn. Each result is compared with fp32; exits with 1 when one is
// further away than the tests' bounds (tests/modeling/op/fp8_linear_test.cpp).
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/autograd/autograd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

#include "benchmarks/device_time.hpp"
#include "modeling/op/fp8/blocks.hpp"
#include "modeling/op/fp8/linear.hpp"
#include "modeling/op/linear.hpp"

namespace {

using namespace hexad::modeling;
using Json = nlohmann::ordered_json;
using Tensors = std::vector<at::Tensor>;
using benchmarks::device_ms;

const at::Device kGpu(at::kCUDA, 0);
constexpr int kInputs = 4;
constexpr int64_t kRanks = 4;

struct Shape {
  const char* name;
  int64_t width;              // K
  std::vector<int64_t> rows;  // N of each weight
};
const std::vector<Shape> kShapes = {
    {"qkv", 4096, {4096, 1024, 1024}}, {"o", 4096, {4096}}, {"gate_up", 4096, {14336, 14336}}, {"down", 14336, {4096}}};

struct Kind {
  const char* name;
  Fp8 fp8;
  double bounds[3];  // ||got - fp32|| / ||fp32||: output, gradient of x, of the weights
};
constexpr Kind kKinds[] = {{"bf16", Fp8::off, {5e-3, 5e-3, 5e-3}},
                           {"e4m3", Fp8::e4m3, {0.04, 0.04, 0.04}},
                           {"hybrid", Fp8::hybrid, {0.04, 0.063, 0.063}},
                           {"blockwise", Fp8::blockwise_e4m3, {0.04, 0.04, 0.04}}};

// Leaves side by side with their sums in grad(): rows of one tensor, or [ranks, rows of a rank, K].
struct Inputs {
  at::Tensor x, grad, flat, sums;
  Tensors weights;

  Inputs(const Shape& s, int64_t tokens, bool by_rank) {
    const auto bf16 = at::TensorOptions(kGpu).dtype(at::kBFloat16);
    int64_t all = 0;
    for (const int64_t rows : s.rows) all += rows;
    x = at::randn({tokens, s.width}, bf16).requires_grad_(true);
    grad = at::randn({tokens, all}, bf16) * 1e-3;
    flat = at::randn({all, s.width}, bf16) * 0.02;
    sums = at::zeros({by_rank ? kRanks : 1, all / (by_rank ? kRanks : 1) * s.width}, bf16.dtype(at::kFloat));
    int64_t begin = 0;
    for (const int64_t rows : s.rows) {
      at::Tensor leaf = at::empty({0}, bf16);
      leaf.set_(flat.storage(), begin * s.width, {rows, s.width});
      weights.push_back(leaf.requires_grad_(true));
      const int64_t ranks = by_rank ? kRanks : 1, chunk = rows / ranks;
      const at::Tensor part = sums.narrow(1, begin / ranks * s.width, chunk * s.width);
      weights.back().mutable_grad() = by_rank ? part.view({ranks, chunk, s.width}) : part.view({rows, s.width});
      begin += rows;
    }
  }
};

Tensors forward(const Inputs& in, Fp8 fp8) {
  LinearOptions options;
  options.fp8 = fp8;
  return apply_linears(in.x, in.weights, Tensors(in.weights.size()), options);
}

at::Tensor backward(const Inputs& in, const Tensors& outs) {
  Tensors wanted = {in.x}, grads;
  wanted.insert(wanted.end(), in.weights.begin(), in.weights.end());
  int64_t begin = 0;
  for (const at::Tensor& out : outs) {
    grads.push_back(in.grad.narrow(1, begin, out.size(1)));
    begin += out.size(1);
  }
  return torch::autograd::grad(outs, wanted, grads, /*retain_graph=*/true, false, /*allow_unused=*/true)[0];
}

double relative(const at::Tensor& got, const at::Tensor& want) {
  return ((got.to(at::kFloat) - want).norm() / want.norm()).item<double>();
}

// Of the output, the gradient of x and the gradients of the weights; true within bounds.
bool check(const Inputs& in, const Kind& kind, Json& row) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = in.x.to(at::kFloat), w = in.flat.to(at::kFloat), g = in.grad.to(at::kFloat);
  in.sums.zero_();
  Tensors outs;
  at::Tensor grad_x;
  {
    const at::AutoGradMode with_grad(true);
    outs = forward(in, kind.fp8);
    grad_x = backward(in, outs);
  }
  Tensors sums;
  for (const at::Tensor& weight : in.weights) sums.push_back(weight.grad().reshape(weight.sizes()));
  const double errors[3] = {relative(at::cat(outs, 1), at::mm(x, w.t())), relative(grad_x, at::mm(g, w)),
                            relative(at::cat(sums), at::mm(g.t(), x))};
  row["errors"] = {errors[0], errors[1], errors[2]};
  return errors[0] <= kind.bounds[0] && errors[1] <= kind.bounds[1] && errors[2] <= kind.bounds[2];
}

Json measure(const Shape& shape, const Kind& kind, int64_t tokens, bool by_rank, bool& right) {
  at::manual_seed(1);
  std::vector<Inputs> in;
  for (int i = 0; i < kInputs; ++i) in.emplace_back(shape, tokens, by_rank);
  std::vector<Tensors> outs;
  for (const Inputs& one : in) outs.push_back(forward(one, kind.fp8));
  Json row = {{"shape", shape.name}, {"kind", kind.name}, {"sums", by_rank ? "ranks" : "whole"}};
  const bool ok = check(in[0], kind, row);
  right = right && ok;
  const double flops = 2.0 * double(tokens) * double(in[0].flat.numel());
  row["forward_ms"] = device_ms([&](int i) { forward(in[i], kind.fp8); }, kInputs);
  row["backward_ms"] = device_ms([&](int i) { backward(in[i], outs[i]); }, kInputs);
  const double forward_ms = row["forward_ms"], backward_ms = row["backward_ms"];
  row["forward_tflops"] = flops / forward_ms / 1e9, row["backward_tflops"] = 2 * flops / backward_ms / 1e9;
  row["tflops"] = 3 * flops / (forward_ms + backward_ms) / 1e9;
  row["ok"] = ok;
  std::printf("%-8s %-7s %-6s forward %6.3f ms %5.0f  backward %6.3f ms %5.0f  both %5.0f TFLOP/s  errors %s%s\n",
              shape.name, kind.name, by_rank ? "ranks" : "whole", forward_ms, row["forward_tflops"].get<double>(),
              backward_ms, row["backward_tflops"].get<double>(), row["tflops"].get<double>(),
              row["errors"].dump().c_str(), ok ? "" : "  TOO FAR");
  std::fflush(stdout);
  return row;
}

// The casts alone: bytes read for the range, read again and written; by strips and blocks read once.
Json casts(int64_t tokens) {
  Json all = Json::array();
  for (const int64_t width : {4096, 14336, 28672}) {
    const at::Tensor x = at::randn({tokens, width}, at::TensorOptions(kGpu).dtype(at::kBFloat16));
    const Fp8Range known = to_fp8({x}, 0, at::kFloat8_e4m3fn, Fp8Copies::rows).range;
    const double bytes = double(x.numel());
    const auto rate = [&](double each, Fp8Copies copies, const Fp8Range& range) {
      return each * bytes / device_ms([&](int) { to_fp8({x}, 0, at::kFloat8_e4m3fn, copies, range); }, 1) / 1e9;
    };
    all.push_back({{"width", width},
                   {"range_and_both_tb_s", rate(6, Fp8Copies::both, {})},
                   {"both_tb_s", rate(4, Fp8Copies::both, known)},
                   {"rows_tb_s", rate(3, Fp8Copies::rows, known)},
                   {"columns_tb_s", rate(3, Fp8Copies::columns, known)}});
    const auto scaled = [&](double each, const auto& cast) {
      return each * bytes / device_ms([&](int) { cast(); }, 1) / 1e9;
    };
    all.back()["strips_both_tb_s"] = scaled(4, [&] { to_fp8_strips({x}, at::kFloat8_e4m3fn, Fp8Copies::both); });
    all.back()["strips_rows_tb_s"] = scaled(3, [&] { to_fp8_strips({x}, at::kFloat8_e4m3fn, Fp8Copies::rows); });
    all.back()["blocks_rows_tb_s"] = scaled(3, [&] { to_fp8_blocks({x}, Fp8Copies::rows); });
    all.back()["blocks_columns_tb_s"] = scaled(3, [&] { to_fp8_blocks({x}, Fp8Copies::columns); });
    std::printf("casts %s\n", all.back().dump().c_str());
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) try {
  const int64_t tokens = argc > 2 ? std::stoll(argv[2]) : 16384;
  at::globalContext().setAllowTF32CuBLAS(false);
  Json report = {
      {"device", at::cuda::getCurrentDeviceProperties()->name}, {"tokens", tokens}, {"casts", casts(tokens)}};
  bool right = true;
  for (const bool by_rank : {false, true}) {
    for (const Kind& kind : kKinds) {
      double ms = 0, flops = 0;
      for (const Shape& shape : kShapes) {
        const Json row = measure(shape, kind, tokens, by_rank, right);
        ms += row["forward_ms"].get<double>() + row["backward_ms"].get<double>();
        for (const int64_t rows : shape.rows) flops += 6.0 * double(tokens) * double(rows * shape.width);
        report["rows"].push_back(row);
      }
      const std::string name = std::string(kind.name) + (by_rank ? "_ranks" : "");
      report["layer"][name] = {{"ms", ms}, {"tflops", flops / ms / 1e9}};
      std::printf("layer    %-12s %.3f ms, %.0f TFLOP/s\n", name.c_str(), ms, flops / ms / 1e9);
    }
  }
  if (argc > 1) std::ofstream(argv[1]) << report.dump(1) << '\n';
  if (!right) std::fprintf(stderr, "a result is further from fp32 than its bound\n");
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fp8_linear: %s\n", error.what());
  return 2;
}
