// Ring attention over zigzag shards equals packed attention over whole rows: values and gradients.
#include "modeling/parallel/context_attention.hpp"

#include "modeling/family/batch_attention.hpp"
#include "modeling/layout/context_shards.hpp"
#include "modeling/op/attention_block.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/ranks.hpp"

namespace hexad::modeling {
namespace {

at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().requires_grad_(true); }

struct Case {
  std::vector<int64_t> cu_seqlens;
  int64_t heads, kv_heads, width, value_width, window;
};

void check_ring(const Case& c, int world) {
  at::manual_seed(3);
  const int64_t tokens = c.cu_seqlens.back();
  ModelConfig config;
  config.sliding_window = {c.window};
  const at::Tensor q = at::randn({tokens, c.heads, c.width}), k = at::randn({tokens, c.kv_heads, c.width}),
                   v = at::randn({tokens, c.kv_heads, c.value_width}),
                   grad = at::randn({tokens, c.heads, c.value_width});
  PackedAttention whole(config, packed_layout(at::tensor(c.cu_seqlens, at::kLong), at::kCPU));
  const std::vector<at::Tensor> in = {leaf(q), leaf(k), leaf(v)};
  const at::Tensor want = whole.attend(0, in[0], in[1], in[2]);
  const auto want_grads = torch::autograd::grad({want}, in, {grad});
  run_ranks(world, [&](TestRank& rank) {
    RingAttention ring(config, c.cu_seqlens, rank.world_group());
    const auto indices = layout::shard_indices(layout::context_shard(c.cu_seqlens, world, rank.rank()));
    const at::Tensor index = at::tensor(indices, at::kLong);
    const auto mine = [&](const at::Tensor& x) { return x.index_select(0, index); };
    const std::vector<at::Tensor> own = {leaf(mine(q)), leaf(mine(k)), leaf(mine(v))};
    const at::Tensor got = ring.attend(0, own[0], own[1], own[2]);
    CHECK(at::allclose(got, mine(want), 1e-5, 1e-5));
    const auto grads = torch::autograd::grad({got}, own, {mine(grad)});
    for (size_t i = 0; i < 3; ++i) CHECK(at::allclose(grads[i], mine(want_grads[i]), 1e-4, 1e-5));
  });
}

}  // namespace

TEST_CASE("ring attention equals packed attention") {
  for (int world : {2, 4}) {
    check_ring({{0, 16}, 4, 4, 8, 8, 0}, world);
    check_ring({{0, 8, 32, 48}, 4, 2, 8, 8, 0}, world);     // documents, shared heads
    check_ring({{0, 24, 24, 40}, 6, 2, 16, 16, 5}, world);  // a window across chunks, an empty document
    check_ring({{0, 16, 48}, 2, 2, 12, 8, 0}, world);       // values of another width
  }
}

TEST_CASE("blocks join to the whole, in any order") {
  at::manual_seed(4);
  const at::Tensor q = at::randn({6, 2, 8}), k = at::randn({18, 2, 8}), v = at::randn({18, 2, 8});
  const BlockResult want = attention_block(q, k, v, {12, 0, 0});
  BlockResult got;
  for (int64_t begin : {12, 0, 6})
    join(got, attention_block(q, k.narrow(0, begin, 6), v.narrow(0, begin, 6), {12, begin, 0}));
  CHECK(at::allclose(got.out, want.out, 1e-5, 1e-6));
  CHECK(at::allclose(got.log_sum, want.log_sum, 1e-5, 1e-6));
  CHECK_FALSE(attention_block(q, k, v, {0, 20, 0}).out.defined());
}

}  // namespace hexad::modeling
