#include "modeling/op/logprob_head.hpp"

#include <c10/core/Allocator.h>

#include "modeling/error.hpp"
#include "modeling/op/next_token.hpp"
#include "modeling/op/row/logit_rows.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

constexpr int64_t kRows = 23, kWidth = 12, kVocab = 50;

// Columns: log-prob, entropy, unfiltered log-prob, from whole logits with autograd's own operators.
at::Tensor reference(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                     const LogprobOptions& options) {
  const at::Tensor logits = at::matmul(hidden, weight.t()) / options.temperature;
  const at::Tensor index = targets.clamp_min(0).unsqueeze(1), counted = (targets >= 0).to(logits.scalar_type());
  const at::Tensor keep = top_k_top_p_mask(logits.detach().to(at::kFloat), options.top_k, options.top_p);
  const at::Tensor logprobs = logits.masked_fill(keep.logical_not(), -1e9).log_softmax(1);
  const at::Tensor entropy = (logprobs.exp() * logprobs).sum(1).neg();
  const at::Tensor plain = logits.log_softmax(1).gather(1, index).squeeze(1);
  const at::Tensor excluded = keep.gather(1, index).squeeze(1).logical_not();
  const at::Tensor picked = logprobs.gather(1, index).squeeze(1).masked_fill(excluded, 0.0);
  return at::stack({picked * counted, entropy * counted, plain * counted}, 1);
}

at::Tensor op(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, LogprobOptions options) {
  const LogprobResult result = head_logprobs(hidden, weight, targets, options);
  CHECK(result.entropy.defined() == options.entropy);
  CHECK(result.unfiltered_logprobs.defined() == options.unfiltered_too);
  const at::Tensor logprobs = result.logprobs.masked_fill(result.logprobs.isneginf(), 0.0);
  return at::stack({logprobs, result.entropy, result.unfiltered_logprobs}, 1);
}

at::Tensor some_targets() {
  at::Tensor targets = at::randint(0, kVocab, {kRows}, at::kLong);
  targets[3] = -1;
  targets[kRows - 1] = -1;
  return targets;
}

void check_head(LogprobOptions options) {
  at::manual_seed(6);
  options.entropy = options.unfiltered_too = true;
  const at::Tensor targets = some_targets();
  for (int64_t chunk : {0, 1, 5, 100}) {
    CAPTURE(chunk);
    options.chunk_tokens = chunk;
    options.kept_bytes = chunk == 5 ? 2 * kVocab * 11 : int64_t{1} << 20;  // some rows' logits, or all
    check_op_everywhere([&](const auto& in) { return op(in[0], in[1], targets.to(in[0].device()), options); },
                        [&](const auto& in) { return reference(in[0], in[1], targets.to(in[0].device()), options); },
                        {at::randn({kRows, kWidth}), at::randn({kVocab, kWidth})});
  }
}

// Rows of a vocabulary that words of four do and do not divide, longer than a block takes at once.
TEST_CASE("head log-probs of a large vocabulary, whose weight takes its own gradient") {
  for (const at::Device device : test_devices()) {
    for (const int64_t vocab : {4099, 5000}) {
      at::manual_seed(8);
      const at::Tensor targets = at::randint(0, vocab, {40}, at::kLong).to(device);
      targets[7] = -1;
      const at::Tensor hidden = at::randn({40, 64}).to(device).requires_grad_(true);
      at::Tensor weight = at::randn({vocab, 64}).to(device).requires_grad_(true);
      weight.mutable_grad() = at::ones({vocab, 64}).to(device);
      const at::Tensor sum = weight.grad();
      const LogprobResult result = head_logprobs(hidden, weight, targets, {.entropy = true, .chunk_tokens = 11});
      const at::Tensor wide = hidden.detach().to(at::kDouble).requires_grad_(true);
      const at::Tensor wide_weight = weight.detach().to(at::kDouble).requires_grad_(true);
      const at::Tensor want = reference(wide, wide_weight, targets, {});
      CHECK(relative_distance(result.logprobs, want.select(1, 0)) <= 1e-5);
      CHECK(relative_distance(result.entropy, want.select(1, 1)) <= 1e-5);
      const at::Tensor by_logprob = at::randn({40}).to(device), by_entropy = at::randn({40}).to(device);
      const auto got = torch::autograd::grad({result.logprobs, result.entropy}, {hidden, weight},
                                             {by_logprob, by_entropy}, false, false, /*allow_unused=*/true);
      const auto expected = torch::autograd::grad({want.select(1, 0), want.select(1, 1)}, {wide, wide_weight},
                                                  {by_logprob.to(at::kDouble), by_entropy.to(at::kDouble)});
      CHECK(!got[1].defined());
      CHECK(relative_distance(got[0], expected[0]) <= 1e-5);
      CHECK(relative_distance(sum - 1, expected[1]) <= 1e-5);
    }
  }
}

TEST_CASE("head log-probs, entropy and gradients equal log_softmax") { check_head({}); }
TEST_CASE("head log-probs with temperature") { check_head({.temperature = 0.7}); }
TEST_CASE("head log-probs with top-k") { check_head({.temperature = 1.3, .top_k = 8}); }
TEST_CASE("head log-probs with top-p") { check_head({.top_p = 0.8}); }
TEST_CASE("head log-probs with top-k and top-p") { check_head({.temperature = 1.5, .top_k = 20, .top_p = 0.9}); }

TEST_CASE("head log-probs: an excluded target is -inf and passes no gradient") {
  at::manual_seed(7);
  const at::Tensor weight = at::randn({kVocab, kWidth}).set_requires_grad(true);
  const at::Tensor hidden = at::randn({1, kWidth}).set_requires_grad(true);
  const at::Tensor worst = at::matmul(hidden, weight.t()).argmin(1);
  const at::Tensor logprobs = head_logprobs(hidden, weight, worst, {.top_k = 1}).logprobs;
  CHECK(logprobs.isneginf().all().item<bool>());
  logprobs.sum().backward();
  CHECK(hidden.grad().equal(at::zeros_like(hidden)));
  CHECK(weight.grad().equal(at::zeros_like(weight)));
}

TEST_CASE("head log-probs: no targets, no rows") {
  const at::Tensor weight = at::randn({kVocab, kWidth}).set_requires_grad(true);
  const at::Tensor logprobs = head_logprobs(at::randn({2, kWidth}), weight, at::full({2}, -1, at::kLong)).logprobs;
  CHECK(logprobs.equal(at::zeros({2})));
  logprobs.sum().backward();
  CHECK(weight.grad().equal(at::zeros_like(weight)));
  CHECK(head_logprobs(at::randn({0, kWidth}), weight, at::empty({0}, at::kLong)).logprobs.numel() == 0);
}

TEST_CASE("head log-probs refuse bad shapes and options") {
  const at::Tensor hidden = at::zeros({2, 3}), weight = at::zeros({4, 5}), targets = at::zeros({2}, at::kLong);
  CHECK_THROWS_WITH_AS(head_logprobs(hidden, weight, targets),
                       "log-prob head: got hidden [2, 3], weight [4, 5], targets [2]; wanted [N, H], [V, H], [N]",
                       Error);
  CHECK_THROWS_WITH_AS(head_logprobs(hidden, at::zeros({4, 3}), targets, {.temperature = 0}),
                       "log-prob head: temperature is 0, wanted more than 0", Error);
  CHECK_THROWS_WITH_AS(head_logprobs(hidden, at::zeros({4, 3}), at::full({2}, 4, at::kLong)),
                       "log-prob head: target 4 is outside the vocabulary of 4", Error);
}

// Remembers the largest allocation of this thread.
struct LargestAllocation : c10::MemoryReportingInfoBase {
  int64_t largest = 0;
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
    largest = std::max(largest, size);
  }
  bool memoryProfilingEnabled() const override { return true; }
};

TEST_CASE("head log-probs never hold the logits of the whole micro-batch") {
  constexpr int64_t rows = 512, vocab = 2000, chunk = 16;
  const at::Tensor weight = at::randn({vocab, 8}).set_requires_grad(true), hidden = at::randn({rows, 8});
  const at::Tensor targets = at::randint(0, vocab, {rows}, at::kLong);
  const auto observer = std::make_shared<LargestAllocation>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, observer);
    head_logprobs(hidden, weight, targets, {.chunk_tokens = chunk}).logprobs.sum().backward();
  }
  CHECK(observer->largest >= chunk * vocab * 4);
  CHECK(observer->largest <= 2 * chunk * vocab * 4);
}

TEST_CASE("head log-probs: a row without a gradient is not made again") {
  constexpr int64_t rows = 512, vocab = 2000, counted = 5;
  const at::Tensor weight = at::randn({vocab, 8}).set_requires_grad(true),
                   hidden = at::randn({rows, 8}).set_requires_grad(true);
  at::Tensor targets = at::randint(0, vocab, {rows}, at::kLong), grad = at::zeros({rows});
  targets[0] = -1;
  grad.slice(0, 0, counted + 1).normal_();
  const at::Tensor want =
      at::matmul(hidden, weight.t()).log_softmax(1).gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
  const auto expected = torch::autograd::grad({want.slice(0, 1)}, {hidden, weight}, {grad.slice(0, 1)});
  const at::Tensor logprobs = head_logprobs(hidden, weight, targets).logprobs;
  const auto observer = std::make_shared<LargestAllocation>();
  std::vector<at::Tensor> got;
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, observer);
    got = torch::autograd::grad({logprobs}, {hidden, weight}, {grad});
  }
  CHECK(relative_distance(got[0], expected[0]) <= 1e-5);
  CHECK(relative_distance(got[1], expected[1]) <= 1e-5);
  CHECK(observer->largest == std::max(counted, int64_t{8}) * vocab * 4);
}

TEST_CASE("next-token targets and positions") {
  const at::Tensor ids = at::tensor(std::vector<int64_t>{7, 8, 9, 4, 5});
  const at::Tensor targets = next_token_targets(ids, at::tensor(std::vector<int64_t>{0, 3, 3, 5}));
  CHECK(targets.equal(at::tensor(std::vector<int64_t>{8, 9, -1, 5, -1})));
  const at::Tensor values = at::tensor(std::vector<float>{1, 2, 0, 4, 0});
  CHECK(at_predicted_token(values).equal(at::tensor(std::vector<float>{0, 1, 2, 0, 4})));
  CHECK(next_token_targets(ids.slice(0, 0, 0), at::tensor(std::vector<int64_t>{0})).numel() == 0);
}

}  // namespace
}  // namespace hexad::modeling
