// Packed causal attention of training on a CPU: ours beside at::scaled_dot_product_attention, which takes such rows as
// a batch of one length.
//
//   taskset -c 1 cpu_attention_speed
//
// Built by `ninja cpu_attention_speed`; one thread. Work is counted as 4 D Hq pairs forward, 2.5 times that backward,
// over the pairs of tokens that see each other. Times: the fastest of ten calls in turn.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>

#include "modeling/op/attention/cpu_attention.hpp"

namespace {

using Tensors = std::vector<at::Tensor>;
using Attend = std::function<at::Tensor(const Tensors&)>;

struct Shape {
  int64_t rows, length, heads, kv_heads, width;

  double forward_flops() const { return 2.0 * double(length * (length + 1) * rows * heads * width); }
};

struct Times {
  double forward = std::numeric_limits<double>::infinity(), backward = forward;  // seconds
};

void measure(const Attend& attend, const Tensors& in, const at::Tensor& grad, Times& best) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  const Clock::time_point begin = Clock::now();
  const at::Tensor out = attend(in);
  const Clock::time_point middle = Clock::now();
  torch::autograd::grad({out}, in, {grad});
  best.forward = std::min(best.forward, seconds(middle - begin));
  best.backward = std::min(best.backward, seconds(Clock::now() - middle));
}

void print(const char* name, const Shape& shape, const Times& t) {
  const double work = shape.forward_flops() / 1e9;
  std::printf("  %-5s forward %8.2f ms %6.1f GFLOP/s   both %8.2f ms %6.1f GFLOP/s\n", name, t.forward * 1e3,
              work / t.forward, (t.forward + t.backward) * 1e3, 3.5 * work / (t.forward + t.backward));
}

void compare(const Shape& shape, at::ScalarType dtype) {
  const int64_t tokens = shape.rows * shape.length;
  const auto leaf = [&](int64_t heads) { return at::randn({tokens, heads, shape.width}).to(dtype).requires_grad_(); };
  const Tensors in = {leaf(shape.heads), leaf(shape.kv_heads), leaf(shape.kv_heads)};
  const at::Tensor grad = at::randn(in[0].sizes()).to(dtype);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i <= shape.rows; ++i) offsets.push_back(i * shape.length);
  const Attend ours = [&](const Tensors& x) {
    return hexad::modeling::cpu_attention(x[0], x[1], x[2], offsets, /*window=*/0);
  };
  const Attend aten = [&](const Tensors& x) {
    const auto rows = [&](const at::Tensor& t) { return t.unflatten(0, {shape.rows, shape.length}).transpose(1, 2); };
    return at::scaled_dot_product_attention(rows(x[0]), rows(x[1]), rows(x[2]), {}, 0.0, /*is_causal=*/true, {},
                                            shape.heads != shape.kv_heads)
        .transpose(1, 2)
        .flatten(0, 1);
  };
  Times mine, peer;
  for (int call = 0; call < 10; ++call) measure(ours, in, grad, mine), measure(aten, in, grad, peer);
  std::printf("%s, %ld rows of %ld, %ld heads over %ld, width %ld\n", dtype == at::kFloat ? "fp32" : "bf16",
              long(shape.rows), long(shape.length), long(shape.heads), long(shape.kv_heads), long(shape.width));
  print("ours", shape, mine), print("ATen", shape, peer);
}

}  // namespace

int main() {
  at::set_num_threads(1);
  for (const Shape& shape : {Shape{8, 256, 9, 3, 64}, Shape{2, 1024, 9, 3, 64}, Shape{32, 64, 9, 3, 64},
                             Shape{8, 256, 14, 2, 64}, Shape{8, 256, 8, 8, 128}}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) compare(shape, dtype);
  }
}
