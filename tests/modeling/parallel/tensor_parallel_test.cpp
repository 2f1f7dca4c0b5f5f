// A pair of parallel linears, the embedding and the head equal the undivided ones: values and gradients.
#include "modeling/parallel/tensor/parallel.hpp"

#include "modeling/op/linear.hpp"
#include "modeling/op/logprob_head.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/ranks.hpp"

namespace hexad::modeling {
namespace {

constexpr int64_t kTokens = 12, kWidth = 8, kInner = 24;

at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().requires_grad_(true); }

at::Tensor rows_of(const at::Tensor& x, const TestRank& rank) {
  return x.chunk(rank.world(), 0)[static_cast<size_t>(rank.rank())];
}

struct Block {
  at::Tensor x = at::randn({kTokens, kWidth}), gate = at::randn({kInner, kWidth}), up = at::randn({kInner, kWidth}),
             down = at::randn({kWidth, kInner}), up_bias = at::randn({kInner}), bias = at::randn({kWidth}),
             grad = at::randn({kTokens, kWidth});
};

// y = down(gate(x) * (up(x) + b)) + b', and the gradients of everything.
std::vector<at::Tensor> undivided(const Block& b) {
  const std::vector<at::Tensor> in = {leaf(b.x), leaf(b.gate), leaf(b.up), leaf(b.up_bias), leaf(b.down), leaf(b.bias)};
  const at::Tensor y = apply_linear(apply_linear(in[0], in[1]) * apply_linear(in[0], in[2], in[3]), in[4], in[5]);
  std::vector<at::Tensor> result = torch::autograd::grad({y}, in, {b.grad});
  result.push_back(y.detach());
  return result;
}

void check_pair(int world, bool sequence_parallel, int64_t token_runs = 1) {
  at::manual_seed(7);
  const Block b;
  const std::vector<at::Tensor> want = undivided(b);
  run_ranks(world, [&](TestRank& rank) {
    const TensorParallel tp{rank.world_group(), sequence_parallel, token_runs};
    const auto mine = [&](const at::Tensor& x) { return rows_of(x, rank); };
    const auto tokens = [&](const at::Tensor& x) { return tp.shards_tokens() ? mine(x) : x; };
    const at::Tensor columns = b.down.chunk(world, 1)[static_cast<size_t>(rank.rank())].contiguous();
    const std::vector<at::Tensor> in = {leaf(tokens(b.x)),     leaf(mine(b.gate)), leaf(mine(b.up)),
                                        leaf(mine(b.up_bias)), leaf(columns),      leaf(b.bias)};
    const std::vector<at::Tensor> parts = column_parallel(in[0], {in[1], in[2]}, {at::Tensor(), in[3]}, tp);
    const at::Tensor y = row_parallel(parts[0] * parts[1], in[4], in[5], tp);
    const std::vector<at::Tensor> got = torch::autograd::grad({y}, in, {tokens(b.grad)});
    CHECK(at::allclose(y, tokens(want[6]), 1e-5, 1e-5));
    CHECK(at::allclose(got[0], tokens(want[0]), 1e-5, 1e-5));
    for (size_t i : {1, 2, 3}) CHECK(at::allclose(got[i], mine(want[i]), 1e-5, 1e-4));
    CHECK(at::allclose(got[4], want[4].chunk(world, 1)[static_cast<size_t>(rank.rank())], 1e-5, 1e-4));
    at::Tensor bias = got[5].clone();  // each rank has seen its tokens alone
    if (tp.shards_tokens()) tp.group.all_reduce(bias).wait();
    CHECK(at::allclose(bias, want[5], 1e-5, 1e-4));
  });
}

// Errors of FP8 products (op/fp8_linear_test.cpp: 0.04, 0.06 with a gradient in e5m2), of which up to four in a row.
void check_fp8_pair(int world, bool sequence_parallel, Fp8 format, bool offered) {
  at::manual_seed(10);
  const int64_t tokens = 36, width = 64, inner = 64 * world;
  const at::Tensor x = at::randn({tokens, width}), grad = at::randn({tokens, width});
  const std::vector<at::Tensor> w = {at::randn({inner, width}), at::randn({inner, width}), at::randn({width, inner})};
  std::vector<at::Tensor> leaves = {leaf(x), leaf(w[0]), leaf(w[1]), leaf(w[2])};
  const at::Tensor whole =
      apply_linear(apply_linear(leaves[0], leaves[1]) * apply_linear(leaves[0], leaves[2]), leaves[3]);
  const std::vector<at::Tensor> want = torch::autograd::grad({whole}, leaves, {grad});
  run_ranks(world, [&](TestRank& rank) {
    const TensorParallel tp{rank.world_group(), sequence_parallel};
    const auto mine = [&](const at::Tensor& t, int64_t dim) {
      return t.chunk(world, dim)[static_cast<size_t>(rank.rank())].contiguous();
    };
    const auto own = [&](const at::Tensor& t) { return tp.shards_tokens() ? mine(t, 0) : t; };
    LinearOptions options;
    options.fp8 = format;
    const std::vector<at::Tensor> in = {leaf(own(x)), leaf(mine(w[0], 0)), leaf(mine(w[1], 0)), leaf(mine(w[2], 1))};
    for (size_t i = 1; i < in.size() && offered; ++i) at::Tensor(in[i]).mutable_grad() = at::zeros_like(in[i]);
    const std::vector<at::Tensor> parts = column_parallel(in[0], {in[1], in[2]}, {{}, {}}, tp, options);
    const at::Tensor y = row_parallel(parts[0] * parts[1], in[3], {}, tp, options);
    std::vector<at::Tensor> got = torch::autograd::grad({y}, in, {own(grad)}, false, false, /*allow_unused=*/true);
    for (size_t i = 1; i < in.size() && offered; ++i) {
      CHECK(!got[i].defined());
      got[i] = in[i].grad();
    }
    const double bound = format == Fp8::hybrid ? 0.14 : 0.10;
    CHECK(relative_distance(y, own(whole)) <= bound);
    CHECK(relative_distance(got[0], own(want[0])) <= bound);
    for (size_t i : {1, 2, 3}) {
      const double error = relative_distance(got[i], mine(want[i], i == 3 ? 1 : 0));
      CHECK(error <= bound);
      CHECK(error >= 0.02);  // it did compute in FP8
    }
  });
}

}  // namespace

TEST_CASE("FP8 linears over ranks are near undivided ones in fp32") {
  for (int world : {2, 4})
    for (const bool sequence_parallel : {false, true})
      for (const Fp8 format : {Fp8::e4m3, Fp8::hybrid})
        check_fp8_pair(world, sequence_parallel, format, /*offered=*/world == 4);
}

TEST_CASE("column- and row-parallel linears equal undivided ones") {
  for (int world : {1, 2, 4}) check_pair(world, /*sequence_parallel=*/false);
}

TEST_CASE("with sequence parallelism too, tokens divided") {
  for (int world : {2, 4}) check_pair(world, /*sequence_parallel=*/true);
}

TEST_CASE("and in runs that travel while others are multiplied, even or not, more than there are tokens") {
  for (int world : {2, 4})
    for (int64_t runs : {2, 4, 7}) check_pair(world, /*sequence_parallel=*/true, runs);
}

TEST_CASE("tokens that do not divide over the ranks are refused") {
  run_ranks(2, [](TestRank& rank) {
    CHECK_THROWS_WITH(row_parallel(at::zeros({3, 2}), at::zeros({2, 2}), {}, {rank.world_group(), true, 4}),
                      "sequence parallel: 3 tokens do not divide over 2 ranks");
    CHECK_THROWS_WITH(reduce_scatter_tokens(at::zeros({3, 2}), rank.world_group()),
                      "sequence parallel: 3 tokens do not divide over 2 ranks");
  });
}

TEST_CASE("a vocabulary over ranks, evenly or not: embedding") {
  for (int64_t vocab : {10, 11}) {
    at::manual_seed(8);
    const at::Tensor whole = at::randn({vocab, kWidth}), ids = at::randint(0, vocab, {kTokens}, at::kLong),
                     grad = at::randn({kTokens, kWidth});
    const at::Tensor want = at::embedding_dense_backward(grad, ids, vocab, -1, false);
    for (bool sequence_parallel : {false, true}) {
      run_ranks(4, [&](TestRank& rank) {
        const TensorParallel tp{rank.world_group(), sequence_parallel};
        const Range mine = chunk_range(vocab, 4, rank.rank());
        const auto tokens = [&](const at::Tensor& x) { return sequence_parallel ? rows_of(x, rank) : x; };
        const at::Tensor rows = leaf(whole.slice(0, mine.begin, mine.end));
        const at::Tensor out = vocab_parallel_embed(rows, mine.begin, ids, tp);
        CHECK(at::equal(out, tokens(at::embedding(whole, ids))));
        CHECK(
            at::allclose(torch::autograd::grad({out}, {rows}, {tokens(grad)})[0], want.slice(0, mine.begin, mine.end)));
      });
    }
  }
}

TEST_CASE("a vocabulary over ranks, evenly or not: log-probs, entropy, filters and their gradients") {
  const LogprobOptions variants[] = {{},
                                     {.temperature = 0.7},
                                     {.temperature = 1.3, .top_k = 4},
                                     {.top_p = 0.7},
                                     {.temperature = 1.5, .top_k = 6, .top_p = 0.8}};
  for (int64_t vocab : {16, 19}) {
    for (const LogprobOptions& variant : variants) {
      at::manual_seed(9);
      LogprobOptions options = variant;
      options.entropy = options.unfiltered_too = true;
      options.chunk_tokens = 5;
      const at::Tensor hidden = at::randn({kTokens, kWidth}), weight = at::randn({vocab, kWidth}),
                       grads = at::randn({3, kTokens});
      at::Tensor targets = at::randint(0, vocab, {kTokens}, at::kLong);
      targets[4] = -1;
      const auto run = [&](const at::Tensor& h, const at::Tensor& w, const LogprobOptions& o) {
        const LogprobResult r = head_logprobs(h, w, targets, o);
        return std::vector<at::Tensor>{r.logprobs, r.entropy, r.unfiltered_logprobs};
      };
      const std::vector<at::Tensor> in = {leaf(hidden), leaf(weight)}, want = run(in[0], in[1], options);
      const std::vector<at::Tensor> want_grads = torch::autograd::grad(want, in, {grads[0], grads[1], grads[2]});
      run_ranks(4, [&](TestRank& rank) {
        LogprobOptions sharded = options;
        sharded.vocab = VocabShard::of(vocab, rank.world_group());
        const Range mine = sharded.vocab.rows;
        const std::vector<at::Tensor> own = {leaf(hidden), leaf(weight.slice(0, mine.begin, mine.end))};
        const std::vector<at::Tensor> got = run(copy_to_ranks(own[0], sharded.vocab.group), own[1], sharded);
        for (size_t i = 0; i < 3; ++i) CHECK(at::allclose(got[i], want[i], 1e-5, 2e-6));
        const auto got_grads = torch::autograd::grad(got, own, {grads[0], grads[1], grads[2]});
        CHECK(at::allclose(got_grads[0], want_grads[0], 1e-5, 1e-5));
        CHECK(at::allclose(got_grads[1], want_grads[1].slice(0, mine.begin, mine.end), 1e-5, 1e-5));
      });
    }
  }
}

}  // namespace hexad::modeling
