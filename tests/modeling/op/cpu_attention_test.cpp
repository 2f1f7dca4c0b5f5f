// The CPU's attention kernels against attention over all scores in fp64, and what they promise besides.
#include "modeling/op/attention/cpu_attention.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "modeling/op/attention/packed_attention.hpp"
#include "modeling/op/checkpoint.hpp"
#include "tests/modeling/support/allocated_bytes.hpp"
#include "tests/modeling/support/attention_reference.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/devices.hpp"

namespace hexad::modeling {
namespace {

using Offsets = std::vector<int64_t>;
using Results = std::vector<at::Tensor>;  // out, and the gradients of q, k and v

struct Heads {
  int64_t query, kv, width, value_width;
};

Offsets offsets_of(const std::vector<int64_t>& lengths) {
  Offsets offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// q, k, v, and a gradient of the output.
Results random_inputs(int64_t tokens, const Heads& heads, at::ScalarType dtype) {
  const auto random = [&](int64_t count, int64_t width) { return at::randn({tokens, count, width}).to(dtype); };
  return {random(heads.query, heads.width), random(heads.kv, heads.width), random(heads.kv, heads.value_width),
          random(heads.query, heads.value_width)};
}

Results run(const Results& in, const Offsets& offsets, int64_t window) {
  const PoisonedMemory poisoned;
  Results leaves;
  for (size_t i = 0; i < 3; ++i) leaves.push_back(in[i].detach().requires_grad_());
  const at::Tensor out = cpu_attention(leaves[0], leaves[1], leaves[2], offsets, window);
  Results all = {out.detach()};
  for (const at::Tensor& grad : torch::autograd::grad({out}, leaves, {in[3]})) all.push_back(grad);
  return all;
}

void check(const Results& in, const Offsets& offsets, int64_t window, double tolerance) {
  const Results got = run(in, offsets, window);
  const AttentionReference want = attention_reference(in[0], in[1], in[2], in[3], offsets, window);
  const at::Tensor wanted[] = {want.out, want.grad_q, want.grad_k, want.grad_v};
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(bool(got[i].scalar_type() == in[0].scalar_type()));
    if (window == 1 && (i == 1 || i == 2)) {  // a softmax of one score has no gradient
      CHECK(distance(got[i], at::zeros_like(wanted[i])) <= 10 * tolerance);
      continue;
    }
    const AttentionError error = attention_error(got[i], wanted[i]);
    CHECK(error.whole <= tolerance);
    CHECK(error.token <= 8 * tolerance);
  }
}

bool same_bits(const Results& a, const Results& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].equal(b[i])) return false;
  return a.size() == b.size();
}

constexpr double kFloatRounding = 2e-6, kBFloat16Rounding = 6e-3;

const std::vector<int64_t> kLengths = {1, 17, 0, 63, 2, 200, 16, 64, 0, 15, 700, 65};
const Heads kHeads[] = {{2, 2, 8, 8},   {6, 2, 20, 20}, {9, 3, 64, 64},  {8, 1, 80, 80},
                        {6, 2, 24, 16}, {3, 3, 16, 40}, {3, 1, 128, 128}};

TEST_CASE("CPU attention equals attention over all scores") {
  at::manual_seed(1);
  const Offsets offsets = offsets_of(kLengths);
  for (const Heads& heads : kHeads) {
    CAPTURE(heads.query);
    CAPTURE(heads.width);
    for (const int64_t window : {0, 1, 5, 64, 1000}) {
      CAPTURE(window);
      check(random_inputs(offsets.back(), heads, at::kFloat), offsets, window, kFloatRounding);
    }
    INFO("in bf16");
    for (const int64_t window : {0, 5})
      check(random_inputs(offsets.back(), heads, at::kBFloat16), offsets, window, kBFloat16Rounding);
  }
}

TEST_CASE("CPU attention over many query heads a KV head, and over no token") {
  at::manual_seed(2);
  const Offsets offsets = offsets_of({3, 40});
  check(random_inputs(43, {500, 1, 8, 8}, at::kFloat), offsets, 0, 1e-5);  // more than rows of a block
  const Results none = run(random_inputs(0, {2, 1, 8, 4}, at::kFloat), {0, 0}, 0);
  CHECK(none[0].size(2) == 4);
  CHECK(none[1].size(2) == 8);
}

TEST_CASE("CPU attention of scores in the thousands") {
  at::manual_seed(3);
  const Offsets offsets = offsets_of({130, 7});
  Results in = random_inputs(137, {4, 2, 64, 64}, at::kFloat);
  in[0] *= 1000;  // softmax picks one key
  const Results got = run(in, offsets, 0);
  const AttentionReference want = attention_reference(in[0], in[1], in[2], in[3], offsets, 0);
  CHECK(attention_error(got[0], want.out).whole <= 1e-3);  // scores are rounded to 1e-7 of thousands
  for (const at::Tensor& x : got) CHECK(x.isfinite().all().item<bool>());
}

TEST_CASE("CPU attention does not hide what is not a number") {
  at::manual_seed(4);
  Results in = random_inputs(100, {2, 1, 16, 16}, at::kFloat);
  in[1][40][0][3] = NAN;
  const at::Tensor out = run(in, {0, 60, 100}, 0)[0];
  CHECK(out.slice(0, 0, 40).isfinite().all().item<bool>());
  CHECK(out.slice(0, 40, 60).isnan().all().item<bool>());
  CHECK(out.slice(0, 60).isfinite().all().item<bool>());
}

TEST_CASE("CPU attention: a document's bits do not go by the others, nor by threads") {
  at::manual_seed(5);
  const Offsets offsets = offsets_of(kLengths);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Results in = random_inputs(offsets.back(), {6, 2, 20, 24}, dtype);
    for (const int64_t window : {0, 50}) {
      const Results packed = run(in, offsets, window);
      for (size_t i = 0; i < kLengths.size(); ++i) {
        const auto document = [&](const Results& all) {
          Results part;
          for (const at::Tensor& x : all) part.push_back(x.slice(0, offsets[i], offsets[i + 1]));
          return part;
        };
        CAPTURE(kLengths[i]);
        CHECK(same_bits(run(document(in), {0, kLengths[i]}, window), document(packed)));
      }
      const int threads = at::get_num_threads();
      for (const int count : {1, 2, 5}) {
        at::set_num_threads(count);
        CHECK(same_bits(run(in, offsets, window), packed));
      }
      at::set_num_threads(threads);
    }
  }
}

TEST_CASE("CPU attention of views of a joint product") {
  at::manual_seed(6);
  const int64_t tokens = 90;
  const Offsets offsets = {0, 70, 90};
  const at::Tensor joint = at::randn({tokens, 4 + 2 + 2, 24});
  const auto transposed = [](const at::Tensor& x) { return x.transpose(1, 2).contiguous().transpose(1, 2); };
  const Results views = {joint.slice(1, 0, 4), joint.slice(1, 4, 6), joint.slice(1, 6, 8),
                         at::randn({4, tokens, 24}).transpose(0, 1)};
  Results dense, strided;
  for (const at::Tensor& x : views) dense.push_back(x.contiguous()), strided.push_back(transposed(x));
  const Results want = run(dense, offsets, 0);
  CHECK(same_bits(run(views, offsets, 0), want));
  CHECK(same_bits(run(strided, offsets, 0), want));
}

TEST_CASE("CPU attention of a rectangular batch is that of packed rows") {
  at::manual_seed(7);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Results in = random_inputs(3 * 33, {4, 2, 8, 12}, dtype);
    const auto rows = [](const at::Tensor& x) { return x.unflatten(0, {3, 33}); };
    const at::Tensor got = padded_attention(rows(in[0]), rows(in[1]), rows(in[2]), 20);
    CHECK(got.flatten(0, 1).equal(cpu_attention(in[0], in[1], in[2], {0, 33, 66, 99}, 20)));
  }
}

TEST_CASE("CPU attention's memory grows with the tokens; without gradients it keeps none") {
  const int64_t tokens = 8192, bytes = tokens * 2 * 16 * 4;
  const auto leaf = [&] { return at::randn({tokens, 2, 16}).requires_grad_(); };
  const at::Tensor q = leaf(), k = leaf(), v = leaf();
  {
    const at::NoGradGuard no_grad;
    const AllocatedBytes allocated;
    const at::Tensor out = cpu_attention(q, k, v, {0, tokens}, 64);
    CHECK_FALSE(out.requires_grad());
    CHECK(allocated.now() == bytes);
  }
  const AllocatedBytes allocated;
  const at::Tensor out = cpu_attention(q, k, v, {0, tokens}, 64);
  torch::autograd::grad({out}, {q, k, v}, {at::ones_like(out)});
  CHECK(allocated.peak() <= 10 * bytes);  // a head's scores would be 256 times as much
}

TEST_CASE("CPU attention in a checkpoint") {
  at::manual_seed(8);
  const Offsets offsets = {0, 30, 75};
  const Results in = random_inputs(75, {4, 2, 16, 16}, at::kFloat);
  Results leaves;
  for (size_t i = 0; i < 3; ++i) leaves.push_back(in[i].clone().requires_grad_());
  const Tensors out =
      checkpoint([&](const Tensors& x) { return Tensors{cpu_attention(x[0], x[1], x[2], offsets, 0)}; }, leaves, {});
  Results got = {out[0].detach()};
  for (const at::Tensor& grad : torch::autograd::grad({out[0]}, leaves, {in[3]})) got.push_back(grad);
  CHECK(same_bits(got, run(in, offsets, 0)));
}

}  // namespace
}  // namespace hexad::modeling
