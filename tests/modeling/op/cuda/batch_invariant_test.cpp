// On a GPU (suite "gpu"): products and attention whose rows have the same bits in any batch, against fp64 too.
#include "modeling/op/cuda/batch_invariant.hpp"

#include <ATen/Functions.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "modeling/error.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/op/logprob_head.hpp"
#include "tests/modeling/support/attention_reference.hpp"
#include "tests/support/test_device.hpp"

namespace hexad::modeling {
namespace {

const at::Device kGpu(at::kCUDA, 0);

at::Tensor random(at::IntArrayRef shape) { return at::randn(shape, at::TensorOptions(kGpu).dtype(at::kBFloat16)); }

double distance(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor difference = got.to(at::kDouble) - want.to(at::kDouble);
  const double d = (difference.norm() / want.to(at::kDouble).norm()).item<double>();
  return d == d ? d : INFINITY;
}

struct Size {
  int64_t in, out, rows;  // rows: of the largest product
};

// Subsets of the rows, in any order, give the bits that they have among all.
void check_rows(const Size& size, bool wide, bool biased) {
  CAPTURE(size.in);
  CAPTURE(size.out);
  CAPTURE(wide);
  const at::Tensor x = random({size.rows, size.in}), weight = random({size.out, size.in});
  const at::Tensor bias = biased ? random({size.out}) : at::Tensor();
  const auto product = [&](const at::Tensor& rows) {
    const at::Tensor out =
        at::full({rows.size(0), size.out}, NAN, x.options().dtype(wide ? at::kFloat : at::kBFloat16));
    cuda::invariant_linear_out(out, rows, weight, bias);
    return out;
  };
  const at::Tensor all = product(x);
  at::Tensor want = at::mm(x.to(at::kDouble), weight.to(at::kDouble).t());
  if (biased) want = want + bias.to(at::kDouble);
  CHECK(distance(all, want) < (wide ? 1e-6 + 1.5e-9 * double(size.in) : 4e-3));
  for (const int64_t count : {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 129, 200, 256, 257, 300, 511}) {
    CAPTURE(count);
    const at::Tensor chosen = at::randperm(size.rows, at::TensorOptions(kGpu).dtype(at::kLong)).slice(0, 0, count);
    CHECK(at::equal(product(x.index_select(0, chosen)), all.index_select(0, chosen)));
  }
}

std::vector<int64_t> offsets_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

struct Heads {
  at::Tensor q, k, v;
  Heads of(int64_t begin, int64_t end) const {
    return {q.slice(0, begin, end), k.slice(0, begin, end), v.slice(0, begin, end)};
  }
};

// Parts of one projection, as training has them.
Heads random_heads(int64_t tokens, int64_t heads, int64_t kv_heads, int64_t dim) {
  const at::Tensor all = random({tokens, heads + 2 * kv_heads, dim});
  return {all.narrow(1, 0, heads), all.narrow(1, heads, kv_heads), all.narrow(1, heads + kv_heads, kv_heads)};
}

at::Tensor attend(const Heads& in, const std::vector<int64_t>& offsets) {
  return packed_attention(in.q, in.k, in.v, packed_layout(at::tensor(offsets), kGpu), 0,
                          AttentionKernel::batch_invariant);
}

const std::vector<std::pair<int64_t, int64_t>> kHeads = {{4, 4}, {8, 2}, {12, 2}, {20, 1}};  // and of keys
const std::vector<int64_t> kLengths = {3, 127, 1, 128, 129, 0, 700, 64, 65, 2, 255, 500, 4096, 63, 16, 17};

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("batch-invariant products: any subset of rows has the bits of all") {
  at::manual_seed(1);
  for (const Size& size : {Size{256, 384, 3000}, Size{576, 1536, 3000}, Size{72, 40, 600}, Size{4096, 4096, 3000},
                           Size{1536, 17920, 2500}, Size{14336, 4096, 1500}}) {
    if (test_device::under_sanitizer() && size.in * size.out > 100'000) continue;
    check_rows(size, /*wide=*/false, /*biased=*/false);
    check_rows(size, /*wide=*/false, /*biased=*/true);
    check_rows(size, /*wide=*/true, /*biased=*/false);
    check_rows(size, /*wide=*/true, /*biased=*/true);
  }
}

TEST_CASE("batch-invariant products: rows with a stride, and gradients like those of the usual linears") {
  at::manual_seed(2);
  const at::Tensor wide = random({90, 512}), weight = random({256, 256}), other = random({128, 256});
  const at::Tensor part = wide.slice(1, 128, 384);
  CHECK(at::equal(cuda::invariant_linear(part, weight, {}), cuda::invariant_linear(part.contiguous(), weight, {})));
  LinearOptions invariant;
  invariant.batch_invariant = true;
  std::vector<at::Tensor> grads[2], outs[2];
  for (const bool own : {false, true}) {
    const std::vector<at::Tensor> leaves = {part.clone().requires_grad_(), weight.clone().requires_grad_(),
                                            other.clone().requires_grad_()};
    outs[own] = apply_linears(leaves[0], {leaves[1], leaves[2]}, {at::Tensor(), at::Tensor()},
                              own ? invariant : LinearOptions());
    grads[own] = torch::autograd::grad(outs[own], leaves, {at::ones_like(outs[own][0]), at::ones_like(outs[own][1])});
  }
  for (size_t i = 0; i < 2; ++i) CHECK(distance(outs[1][i], outs[0][i]) < 4e-3);
  for (size_t i = 0; i < 3; ++i) CHECK(at::equal(grads[1][i], grads[0][i]));
}

TEST_CASE("batch-invariant attention: forward and backward against fp64") {
  at::manual_seed(3);
  const std::vector<int64_t> offsets = offsets_of({3, 127, 1, 128, 129, 0, 700, 64, 65, 2, 255, 500});
  const PackedLayout layout = packed_layout(at::tensor(offsets), kGpu);
  for (const int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : kHeads) {
      if (test_device::under_sanitizer() && heads > 8) continue;
      CAPTURE(dim);
      CAPTURE(heads);
      CAPTURE(kv_heads);
      const Heads in = random_heads(offsets.back(), heads, kv_heads, dim);
      const at::Tensor grad = random({offsets.back(), heads, dim});
      const std::vector<at::Tensor> leaves = {in.q.detach().requires_grad_(), in.k.detach().requires_grad_(),
                                              in.v.detach().requires_grad_()};
      const at::Tensor out =
          packed_attention(leaves[0], leaves[1], leaves[2], layout, 0, AttentionKernel::batch_invariant);
      const std::vector<at::Tensor> grads = torch::autograd::grad({out}, leaves, {grad});
      const AttentionReference want = attention_reference(in.q, in.k, in.v, grad, offsets, 0);
      CHECK(attention_error(out.detach(), want.out).whole <= 8e-3);
      CHECK(attention_error(out.detach(), want.out).token <= 3e-2);
      CHECK(attention_error(grads[0], want.grad_q).whole <= 8e-3);
      CHECK(attention_error(grads[1], want.grad_k).whole <= 8e-3);
      CHECK(attention_error(grads[2], want.grad_v).whole <= 8e-3);
    }
  }
}

TEST_CASE("batch-invariant attention: a sequence has the same bits alone, in any pack and cut short") {
  at::manual_seed(4);
  std::mt19937_64 rng(5);
  const std::vector<int64_t> offsets = offsets_of(kLengths);
  for (const int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : kHeads) {
      CAPTURE(dim);
      CAPTURE(heads);
      CAPTURE(kv_heads);
      const Heads in = random_heads(offsets.back(), heads, kv_heads, dim);
      const at::Tensor all = attend(in, offsets);
      for (size_t i = 0; i < kLengths.size(); ++i) {
        if (kLengths[i] == 0) continue;
        CAPTURE(kLengths[i]);
        const int64_t part = 1 + int64_t(rng() % uint64_t(kLengths[i])), begin = offsets[i];
        CHECK(at::equal(attend(in.of(begin, offsets[i + 1]), {0, kLengths[i]}), all.slice(0, begin, offsets[i + 1])));
        CHECK(at::equal(attend(in.of(begin, begin + part), {0, part}), all.slice(0, begin, begin + part)));
      }
      std::vector<size_t> order(kLengths.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), rng);
      std::vector<at::Tensor> q, k, v, want;
      std::vector<int64_t> lengths;
      for (const size_t i : order) {
        const Heads one = in.of(offsets[i], offsets[i + 1]);
        q.push_back(one.q), k.push_back(one.k), v.push_back(one.v), lengths.push_back(kLengths[i]);
        want.push_back(all.slice(0, offsets[i], offsets[i + 1]));
      }
      CHECK(at::equal(attend({at::cat(q), at::cat(k), at::cat(v)}, offsets_of(lengths)), at::cat(want)));
    }
  }
}

TEST_CASE("batch-invariant log-prob head: chunks and neighbours do not show") {
  at::manual_seed(6);
  const at::Tensor hidden = random({700, 256}), weight = random({1000, 256}) * 0.1;
  const at::Tensor targets = at::randint(1000, {700}, at::TensorOptions(kGpu).dtype(at::kLong));
  for (const double temperature : {1.0, 0.7}) {
    LogprobOptions options;
    options.batch_invariant = true;
    options.temperature = temperature;
    const at::Tensor all = head_logprobs(hidden, weight, targets, options).logprobs;
    const at::Tensor wanted =
        at::log_softmax(at::mm(hidden.to(at::kDouble), weight.to(at::kDouble).t()) / temperature, 1)
            .gather(1, targets.unsqueeze(1))
            .squeeze(1);
    CHECK(distance(all, wanted) < 1e-5);
    for (const int64_t count : {1, 5, 40, 300}) {
      options.chunk_tokens = 1 + count / 3;
      const at::Tensor chosen = at::randperm(700, at::TensorOptions(kGpu).dtype(at::kLong)).slice(0, 0, count);
      const at::Tensor part =
          head_logprobs(hidden.index_select(0, chosen), weight, targets.index_select(0, chosen), options).logprobs;
      CHECK(at::equal(part, all.index_select(0, chosen)));
    }
  }
}

TEST_CASE("batch-invariant operators refuse what does not fit, with sizes") {
  const auto message = [](const auto& run) {
    try {
      run();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(
      message([] {
        cuda::invariant_linear(random({4, 12}), random({16, 12}), {});
      }) ==
      "batch-invariant product: got x [4, 12] and a weight [16, 12] in BFloat16, wanted sizes that are multiples of 8, "
      "both bf16");
  CHECK(message([] {
          cuda::invariant_linear(random({4, 16}).to(at::kHalf), random({16, 16}), {});
        }) == "batch-invariant product: got Half on cuda:0, wanted bfloat16 on a GPU");
  const Heads in = random_heads(40, 4, 2, 64);
  const PackedLayout layout = packed_layout(at::tensor(std::vector<int64_t>{0, 40}), kGpu);
  CHECK(message([&] { packed_attention(in.q, in.k, in.v, layout, 8, AttentionKernel::batch_invariant); }) ==
        "batch-invariant attention: got a window of 8 and sequences of up to 40 tokens, wanted no window below that");
  const Heads odd = random_heads(40, 4, 2, 96);
  const at::NoGradGuard no_grad;
  CHECK(message([&] { packed_attention(odd.q, odd.k, odd.v, layout, 0, AttentionKernel::batch_invariant); }) ==
        "batch-invariant attention: got heads of 96 and values of 96, wanted 64 or 128");
}

TEST_SUITE_END();

}  // namespace hexad::modeling
