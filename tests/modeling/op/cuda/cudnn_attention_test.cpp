// On a GPU (suite "gpu"): packed attention through cuDNN and ATen against fp64, forward and backward.
#include "modeling/op/cuda/attention/cudnn_attention.hpp"

#include <c10/cuda/CUDAFunctions.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <random>

#include "modeling/error.hpp"
#include "modeling/op/attention/packed_attention.hpp"
#include "modeling/op/cuda/attention/cudnn_graph.hpp"
#include "tests/modeling/support/attention_reference.hpp"
#include "tests/support/test_device.hpp"

namespace hexad::modeling {
namespace {

using Offsets = std::vector<int64_t>;

const at::Device kGpu(at::kCUDA, 0);

struct Heads {
  int64_t q, kv, width, value_width;
};

struct Inputs {
  at::Tensor q, k, v, grad_out;
};

Offsets offsets_of(const std::vector<int64_t>& lengths) {
  Offsets offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

std::vector<int64_t> repeated(const std::vector<int64_t>& lengths, int64_t times) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < times; ++i) all.insert(all.end(), lengths.begin(), lengths.end());
  return all;
}

// Parts of one projection [T, Hq D + Hkv D + Hkv Dv] with a few columns of something else behind them.
Inputs fused_inputs(int64_t tokens, const Heads& h, at::ScalarType dtype) {
  const int64_t q = h.q * h.width, k = h.kv * h.width, v = h.kv * h.value_width;
  const at::Tensor all = at::randn({tokens, q + k + v + 16}, at::TensorOptions(kGpu).dtype(dtype));
  all.slice(1, q + k + v).fill_(NAN);
  const auto part = [&](int64_t begin, int64_t heads, int64_t width) {
    return all.narrow(1, begin, heads * width).view({tokens, heads, width});
  };
  return {part(0, h.q, h.width), part(q, h.kv, h.width), part(q + k, h.kv, h.value_width),
          at::randn({tokens, h.q, h.value_width}, all.options())};
}

Inputs separate_inputs(int64_t tokens, const Heads& h, at::ScalarType dtype) {
  const Inputs fused = fused_inputs(tokens, h, dtype);
  return {fused.q.contiguous(), fused.k.contiguous(), fused.v.contiguous(), fused.grad_out};
}

// A few roundings of the dtype: of the probabilities, of their gradients, of the result.
struct Bounds {
  double whole, token;
};
Bounds bounds_of(at::ScalarType dtype) { return dtype == at::kHalf ? Bounds{1e-3, 4e-3} : Bounds{8e-3, 3e-2}; }

void check_close(const std::string& what, const at::Tensor& got, const at::Tensor& want, at::ScalarType dtype) {
  const AttentionError error = attention_error(got, want);
  INFO(what << ": whole " << error.whole << ", worst token " << error.token);
  CHECK(error.whole <= bounds_of(dtype).whole);  // false for NaN
  CHECK(error.token <= bounds_of(dtype).token);
}

void check_pack(const Inputs& in, const Offsets& offsets, int64_t window, AttentionKernel kernel) {
  const PackedLayout layout = packed_layout(at::tensor(offsets), kGpu);
  const std::vector<at::Tensor> leaves = {in.q.detach().requires_grad_(), in.k.detach().requires_grad_(),
                                          in.v.detach().requires_grad_()};
  const at::Tensor out = packed_attention(leaves[0], leaves[1], leaves[2], layout, window, kernel);
  const std::vector<at::Tensor> grads = torch::autograd::grad({out}, leaves, {in.grad_out});
  const AttentionReference want = attention_reference(in.q, in.k, in.v, in.grad_out, offsets, window);
  const at::ScalarType dtype = in.q.scalar_type();
  CHECK(bool(out.scalar_type() == dtype));
  CHECK((out.is_contiguous() || !cuda::has_cudnn_attention(kGpu)));
  check_close("out", out.detach(), want.out, dtype);
  check_close("gradient of q", grads[0], want.grad_q, dtype);
  check_close("gradient of k", grads[1], want.grad_k, dtype);
  check_close("gradient of v", grads[2], want.grad_v, dtype);
}

void check(const std::vector<int64_t>& lengths, const Heads& heads, at::ScalarType dtype = at::kBFloat16,
           int64_t window = 0) {
  at::manual_seed(7);
  const Offsets offsets = offsets_of(lengths);
  const Inputs in = fused_inputs(offsets.back(), heads, dtype);
  REQUIRE(cuda::fits_attention(in.q, in.k, in.v) == cuda::has_cudnn_attention(kGpu));  // elsewhere: flash
  check_pack(in, offsets, window, AttentionKernel::cudnn);
}

const std::vector<int64_t> kMixed = {3, 127, 1, 128, 129, 0, 700, 64, 65, 2, 255, 500};

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("cuDNN attention takes a gradient that begins inside of a word") {
  at::manual_seed(8);
  const Offsets offsets = offsets_of(kMixed);
  Inputs in = fused_inputs(offsets.back(), {8, 2, 64, 64}, at::kBFloat16);
  const at::Tensor flat = at::randn({in.grad_out.numel() + 1}, in.grad_out.options());
  in.grad_out = flat.slice(0, 1).view(in.grad_out.sizes());
  check_pack(in, offsets, 0, AttentionKernel::cudnn);
}

TEST_CASE("cuDNN attention: heads that share keys, widths, 16-bit types") {
  check(kMixed, {8, 8, 64, 64});
  check(kMixed, {8, 2, 128, 128});
  check(kMixed, {12, 2, 96, 96});
  check(kMixed, {16, 2, 128, 128}, at::kHalf);
  check(kMixed, {8, 2, 64, 64}, at::kHalf);
}

TEST_CASE("cuDNN attention: widths at the edge") {
  check(kMixed, {4, 2, 16, 16});
  check(kMixed, {8, 2, 80, 80});
  check(kMixed, {4, 4, 128, 64});
}

TEST_CASE("cuDNN attention: wide heads") {
  SUBCASE("latent attention") { check(kMixed, {4, 4, 192, 128}); }
  SUBCASE("256") { check(kMixed, {4, 2, 256, 256}); }
}

TEST_CASE("cuDNN attention: sliding windows") {
  check(kMixed, {8, 2, 128, 128}, at::kBFloat16, 7);
  check(kMixed, {8, 2, 128, 128}, at::kBFloat16, 300);
  check(kMixed, {8, 2, 128, 128}, at::kBFloat16, 5000);  // no row is as long
}

TEST_CASE("cuDNN attention: packs of odd shapes") {
  const Heads heads = {8, 2, 128, 128};
  check({1}, heads);
  check({1, 1, 1}, heads);
  check({1001}, heads);
  check({0, 0, 5, 0, 130, 0}, heads);
  check(repeated({1, 2, 3, 5, 8, 13, 21}, 43), heads);  // 301 rows
  check({1, 4095, 1}, heads);
}

TEST_CASE("cuDNN attention: inputs of strides of their own") {
  at::manual_seed(8);
  const Offsets offsets = offsets_of(kMixed);
  Inputs in = separate_inputs(offsets.back(), {8, 2, 128, 128}, at::kBFloat16);
  check_pack(in, offsets, 0, AttentionKernel::cudnn);
  in.grad_out = in.grad_out.transpose(0, 1).contiguous().transpose(0, 1);  // heads first
  check_pack(in, offsets, 0, AttentionKernel::cudnn);
  in.grad_out = in.grad_out.transpose(1, 2).contiguous().transpose(1, 2);  // no unit stride in a head
  check_pack(in, offsets, 0, AttentionKernel::cudnn);
  in.grad_out = in.grad_out[0][0].expand_as(in.grad_out);  // as the gradient of a sum
  check_pack(in, offsets, 0, AttentionKernel::cudnn);
}

TEST_CASE("cuDNN attention: packs that change run on one graph, and leave no trace") {
  const Heads heads = {8, 2, 128, 128};
  std::mt19937 random(9);
  const auto lengths = [&] {
    std::vector<int64_t> all(9 + random() % 8);
    for (int64_t& length : all) length = int64_t(random() % 250);
    all[random() % all.size()] = 129 + int64_t(random() % 128);
    return all;
  };
  int64_t graphs = 0;
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    check(lengths(), heads);
    if (i == 0) graphs = cuda::cudnn_graph_count();
  }
  CHECK(cuda::cudnn_graph_count() == graphs);
}

TEST_CASE("cuDNN attention writes every element of its results and nothing beside them") {
  at::manual_seed(10);
  const Offsets offsets = offsets_of(kMixed);
  const int64_t tokens = offsets.back(), guard = 300;
  const Inputs in = fused_inputs(tokens, {8, 2, 128, 128}, at::kBFloat16);
  const auto poisoned = [&](at::IntArrayRef shape, at::ScalarType dtype) {
    return at::full(shape, NAN, at::TensorOptions(kGpu).dtype(dtype));
  };
  const auto used = [&](const at::Tensor& x) { return x.slice(0, 0, tokens); };
  const at::Tensor out = poisoned({tokens + guard, 8, 128}, at::kBFloat16);
  const at::Tensor sums = poisoned({tokens + guard, 8}, at::kFloat);
  const at::Tensor wide = poisoned({tokens + guard, in.q.stride(0)}, at::kBFloat16);
  const at::Tensor grad_q = used(wide).slice(1, 0, 8 * 128).view({tokens, 8, 128});
  const at::Tensor grad_k = poisoned({tokens + guard, 2, 128}, at::kBFloat16), grad_v = grad_k.clone();
  const RaggedRows rows(offsets, bucketed_bounds(offsets), kGpu);
  cuda::run_cudnn_attention({in.q, in.k, in.v, used(out), used(sums)}, rows, 0);
  cuda::run_cudnn_attention({in.q, in.k, in.v, used(out), used(sums), in.grad_out, grad_q, used(grad_k), used(grad_v)},
                            rows, 0);
  for (const at::Tensor& x : {out, sums, grad_k, grad_v}) {
    CHECK(used(x).isfinite().all().item<bool>());
    CHECK(x.slice(0, tokens).isnan().all().item<bool>());
  }
  CHECK(grad_q.isfinite().all().item<bool>());
  CHECK(wide.slice(0, tokens).isnan().all().item<bool>());
  CHECK(wide.slice(1, 8 * 128).isnan().all().item<bool>());
  const AttentionReference want = attention_reference(in.q, in.k, in.v, in.grad_out, offsets, 0);
  check_close("out", used(out), want.out, at::kBFloat16);
  check_close("gradient of q", grad_q, want.grad_q, at::kBFloat16);
  check_close("gradient of k", used(grad_k), want.grad_k, at::kBFloat16);
  check_close("gradient of v", used(grad_v), want.grad_v, at::kBFloat16);
}

TEST_CASE("cuDNN attention: the gradient of q is laid out as q") {
  if (!cuda::has_cudnn_attention(kGpu))
    return test_device::leave_out("strides of cuDNN's gradients", "this build's attention is flash here");
  const Inputs in = fused_inputs(40, {8, 2, 128, 128}, at::kBFloat16);
  const std::vector<at::Tensor> leaves = {in.q.detach().requires_grad_(), in.k.detach().requires_grad_(),
                                          in.v.detach().requires_grad_()};
  const at::Tensor out = packed_attention(leaves[0], leaves[1], leaves[2], packed_layout(at::tensor({0, 40}), kGpu));
  const std::vector<at::Tensor> grads = torch::autograd::grad({out}, leaves, {in.grad_out});
  CHECK(grads[0].strides() == in.q.strides());
  CHECK(grads[1].is_contiguous());
  CHECK(grads[2].is_contiguous());
}

TEST_CASE("what cuDNN attention leaves to others") {
  const Inputs in = fused_inputs(40, {8, 2, 128, 128}, at::kBFloat16);
  CHECK(cuda::fits_attention(in.q, in.k, in.v) == cuda::has_cudnn_attention(kGpu));
  CHECK_FALSE(cuda::fits_attention(in.q.to(at::kFloat), in.k.to(at::kFloat), in.v.to(at::kFloat)));
  CHECK_FALSE(cuda::fits_attention(in.q.slice(2, 0, 72), in.k.slice(2, 0, 72), in.v));
  CHECK_FALSE(cuda::fits_attention(in.q.slice(2, 1, 65), in.k.slice(2, 1, 65), in.v));  // not at 16 bytes
  CHECK_FALSE(cuda::fits_attention(in.q.slice(0, 0, 0), in.k.slice(0, 0, 0), in.v.slice(0, 0, 0)));
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  CHECK_FALSE(cuda::fits_attention(in.q, in.k, in.v));
  at::globalContext().setDeterministicAlgorithms(false, false);
}

TEST_CASE("cuDNN attention: a shape that cuDNN has no plan for is named") {
  const Inputs in = fused_inputs(40, {8, 2, 12, 12}, at::kBFloat16);
  const RaggedRows rows({0, 40}, bucketed_bounds({0, 40}), kGpu);
  const at::Tensor out = at::empty_like(in.grad_out), sums = at::empty({40, 8}, out.options().dtype(at::kFloat));
  CHECK_THROWS_WITH_AS(
      cuda::run_cudnn_attention({in.q, in.k, in.v, out, sums}, rows, 0),
      doctest::Contains("attention through cuDNN, forward pass, 8 rows of up to 128 tokens, 8 heads of 12"), Error);
}

TEST_CASE("ATen's kernels run the same packs") {
  at::manual_seed(11);
  const Offsets offsets = offsets_of(kMixed);
  for (const int64_t window : {0, 300}) {
    const Inputs in = fused_inputs(offsets.back(), {8, 2, 128, 128}, at::kBFloat16);
    check_pack(in, offsets, window, AttentionKernel::flash);
    check_pack(in, offsets, window, AttentionKernel::plain);
  }
}

TEST_CASE("deterministic mode: the same gradients bit for bit") {
  at::manual_seed(12);
  const Offsets offsets = offsets_of(kMixed);
  const Inputs in = fused_inputs(offsets.back(), {8, 2, 128, 128}, at::kBFloat16);
  const PackedLayout layout = packed_layout(at::tensor(offsets), kGpu);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  std::vector<std::vector<at::Tensor>> runs;
  for (int i = 0; i < 5; ++i) {
    const std::vector<at::Tensor> leaves = {in.q.detach().requires_grad_(), in.k.detach().requires_grad_(),
                                            in.v.detach().requires_grad_()};
    const at::Tensor out = packed_attention(leaves[0], leaves[1], leaves[2], layout);
    runs.push_back(torch::autograd::grad({out}, leaves, {in.grad_out}));
    runs.back().push_back(out.detach());
  }
  at::globalContext().setDeterministicAlgorithms(false, false);
  for (size_t i = 1; i < runs.size(); ++i)
    for (size_t j = 0; j < 4; ++j) CHECK(runs[i][j].equal(runs[0][j]));
}

TEST_CASE("packed attention never waits for the device") {
  const Offsets offsets = offsets_of(kMixed);
  const Inputs in = fused_inputs(offsets.back(), {8, 2, 128, 128}, at::kBFloat16);
  for (const AttentionKernel kernel : {AttentionKernel::cudnn, AttentionKernel::flash}) {
    const std::vector<at::Tensor> leaves = {in.q.detach().requires_grad_(), in.k.detach().requires_grad_(),
                                            in.v.detach().requires_grad_()};
    const auto run = [&] {
      const PackedLayout layout = packed_layout(at::tensor(offsets), kGpu);
      const at::Tensor out = packed_attention(leaves[0], leaves[1], leaves[2], layout, 0, kernel);
      torch::autograd::grad({out}, leaves, {in.grad_out});
    };
    run();
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
    CHECK_NOTHROW(run());
    CHECK_THROWS(in.q.sum().item());  // the mode is on
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
  }
}

TEST_SUITE_END();

}  // namespace hexad::modeling
