// Every form of context parallelism equals packed attention over whole rows: values and gradients.
#include "modeling/parallel/context/attention.hpp"

#include "modeling/error.hpp"
#include "modeling/family/batch_attention.hpp"
#include "modeling/layout/context_shards.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/ranks.hpp"

namespace hexad::modeling {
namespace {

using enum ContextExchange;

at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().requires_grad_(true); }

struct Case {
  std::vector<int64_t> cu_seqlens;
  int64_t heads, kv_heads, width, value_width, window;
};

// The ranks of a test, `inner` of them in an inner group.
ContextParallel context_of(TestRank& rank, int inner, std::vector<ContextExchange> exchange) {
  ContextParallel context{rank.world_group(), {}, {}, std::move(exchange)};
  std::vector<int> inside, across;
  for (int other = 0; other < rank.world(); ++other) {
    if (other / inner == rank.rank() / inner) inside.push_back(other);
    if (other % inner == rank.rank() % inner) across.push_back(other);
  }
  context.inner = rank.group(inside);
  context.outer = rank.group(across);
  return context;
}

// Every layer has the next of `exchange`; all must give the same.
void check_forms(const Case& c, int world, int inner, const std::vector<ContextExchange>& exchange) {
  CAPTURE(world);
  CAPTURE(inner);
  at::manual_seed(3);
  const int64_t tokens = c.cu_seqlens.back();
  const PackedLayout row = packed_layout(at::tensor(c.cu_seqlens, at::kLong), at::kCPU);
  ModelConfig config;
  config.sliding_window = std::vector<int64_t>(exchange.size(), c.window);
  const at::Tensor q = at::randn({tokens, c.heads, c.width}), k = at::randn({tokens, c.kv_heads, c.width}),
                   v = at::randn({tokens, c.kv_heads, c.value_width}),
                   grad = at::randn({tokens, c.heads, c.value_width});
  PackedAttention whole(config, row);
  const std::vector<at::Tensor> in = {leaf(q), leaf(k), leaf(v)};
  const at::Tensor want = whole.attend(0, in[0], in[1], in[2]);
  const auto want_grads = torch::autograd::grad({want}, in, {grad});
  run_ranks(world, [&](TestRank& rank) {
    ContextAttention attention(config, row, context_of(rank, inner, exchange));
    const auto indices = layout::shard_indices(layout::context_shard(c.cu_seqlens, world, rank.rank()));
    const at::Tensor index = at::tensor(indices, at::kLong);
    const auto mine = [&](const at::Tensor& x) { return x.index_select(0, index); };
    for (size_t layer = 0; layer < exchange.size(); ++layer) {
      INFO("exchange ", static_cast<int>(exchange[layer]));
      const std::vector<at::Tensor> own = {leaf(mine(q)), leaf(mine(k)), leaf(mine(v))};
      const at::Tensor got = attention.attend(static_cast<int64_t>(layer), own[0], own[1], own[2]);
      CHECK(relative_distance(got, mine(want)) <= 1e-5);
      const auto grads = torch::autograd::grad({got}, own, {mine(grad)});
      for (size_t i = 0; i < 3; ++i) CHECK(relative_distance(grads[i], mine(want_grads[i])) <= 1e-5);
    }
  });
}

const std::vector<ContextExchange> kAll = {p2p, all_gather, a2a, a2a_p2p};

}  // namespace

TEST_CASE("every form of context attention equals packed attention") {
  for (int world : {2, 4}) {
    check_forms({{0, 16}, 4, 4, 8, 8, 0}, world, 2, kAll);
    check_forms({{0, 8, 32, 48}, 8, 2, 8, 8, 0}, world, 2, kAll);     // documents, shared heads: fewer than ranks
    check_forms({{0, 24, 24, 40}, 8, 4, 16, 16, 5}, world, 2, kAll);  // a window across chunks, an empty document
    check_forms({{0, 16, 48}, 4, 4, 12, 8, 0}, world, 2, kAll);       // values narrower than keys
    check_forms({{0, 16, 48}, 4, 1, 8, 12, 20}, world, 2, kAll);      // wider, one head for all, a longer window
  }
}

TEST_CASE("context attention over the tiles of a long window") {
  check_forms({{0, 640, 1664}, 4, 2, 8, 8, 300}, 2, 2, kAll);
  check_forms({{0, 1600}, 4, 2, 8, 8, 0}, 4, 2, kAll);
}

TEST_CASE("the inner groups of a2a+p2p may be one rank, all of them, and of an odd size") {
  check_forms({{0, 16, 40}, 4, 2, 8, 8, 0}, 4, 1, {a2a_p2p, p2p});
  check_forms({{0, 16, 40}, 4, 2, 8, 8, 0}, 4, 4, {a2a_p2p, a2a});
  check_forms({{0, 24, 60}, 6, 3, 8, 8, 0}, 6, 3, {a2a_p2p, p2p});
}

TEST_CASE("one form serves every layer, and none asked for is the ring") {
  ModelConfig config;
  config.sliding_window = {0, 0, 0};
  run_ranks(2, [&](TestRank& rank) {
    const PackedLayout row = packed_layout(at::tensor({int64_t{0}, int64_t{8}}), at::kCPU);
    at::manual_seed(7);
    const at::Tensor x = at::randn({4, 3, 8});
    ContextAttention ring(config, row, {rank.world_group(), {}, {}, {}});
    ContextAttention gathered(config, row, {rank.world_group(), {}, {}, {all_gather}});
    const at::Tensor want = ring.attend(0, x, x, x);
    CHECK(relative_distance(gathered.attend(2, x, x, x), want) <= 1e-6);
    ContextAttention shared(config, row, {rank.world_group(), {}, {}, {a2a}});
    CHECK_THROWS_WITH_AS(shared.attend(0, x, x, x), "a2a: 3 heads and 3 key/value heads do not divide over 2 ranks",
                         Error);
  });
}

TEST_CASE("names of the forms") {
  for (const auto& [name, exchange] : {std::pair{"p2p", p2p}, std::pair{"all_gather", all_gather},
                                       std::pair{"a2a", a2a}, std::pair{"a2a+p2p", a2a_p2p}})
    CHECK(parse_context_exchange(name) == exchange);
  CHECK_FALSE(parse_context_exchange("ring"));
}

TEST_CASE("heads that ranks can share") {
  CHECK(heads_divide(8, 8, 4));
  CHECK(heads_divide(8, 2, 4));  // each key/value head on two ranks
  CHECK_FALSE(heads_divide(6, 6, 4));
  CHECK_FALSE(heads_divide(12, 3, 4));
}

}  // namespace hexad::modeling
