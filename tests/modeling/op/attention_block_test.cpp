// Blocks of attention, alone and joined, equal attention over all scores: values and gradients.
#include "modeling/op/attention/block.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include "modeling/op/attention/chunk_attention.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

// Over all scores at once; queries begin at `begin` of the sequence whose keys these are.
at::Tensor plain_attention(const std::vector<at::Tensor>& in, int64_t begin, int64_t window) {
  const int64_t shared = in[0].size(1) / in[1].size(1);
  const at::Tensor q = in[0].transpose(0, 1), k = in[1].repeat_interleave(shared, 1).transpose(0, 1),
                   v = in[2].repeat_interleave(shared, 1).transpose(0, 1);
  const auto index = at::TensorOptions(q.device()).dtype(at::kLong);
  const at::Tensor distance =
      (at::arange(q.size(1), index) + begin).unsqueeze(1) - at::arange(k.size(1), index).unsqueeze(0);
  at::Tensor seen = distance >= 0;
  if (window > 0) seen = seen.logical_and(distance < window);
  const at::Tensor scores = at::matmul(q, k.transpose(1, 2)) / std::sqrt(double(q.size(2)));
  return at::matmul(scores.masked_fill(seen.logical_not(), -INFINITY).softmax(-1), v).transpose(0, 1);
}

std::vector<at::Tensor> inputs(int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads, int64_t width,
                               int64_t value_width) {
  return {at::randn({queries, heads, width}), at::randn({keys, kv_heads, width}),
          at::randn({keys, kv_heads, value_width})};
}

// One causal sequence as one block.
struct WholeBlock : torch::autograd::Function<WholeBlock> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, int64_t window) {
    const BlockResult result = attention_block(q, k, v, {0, 0, window});
    ctx->save_for_backward({q, k, v, result.out, result.log_sum});
    ctx->saved_data["window"] = window;
    return result.out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2];
    const BlockGradients found =
        attention_block_backward(grads[0], q, k, v, {saved[3], saved[4]}, {0, 0, ctx->saved_data["window"].toInt()});
    return {found.q.to(q.scalar_type()), found.k.to(k.scalar_type()), found.v.to(v.scalar_type()), at::Tensor()};
  }
};

}  // namespace

TEST_CASE("the pieces of a block cover every pair that sees each other, once, and no other") {
  std::srand(1);
  for (int trial = 0; trial < 400; ++trial) {
    const int64_t queries = 1 + std::rand() % 700, keys = 1 + std::rand() % 700;
    const BlockShape shape{std::rand() % 3 ? std::rand() % 600 : 0, std::rand() % 2 ? std::rand() % 600 : 0,
                           std::rand() % 2 ? 1 + std::rand() % 500 : 0};
    at::Tensor covered = at::zeros({queries, keys}, at::kInt);
    const auto positions = [](int64_t begin, int64_t count) { return at::arange(begin, begin + count, at::kLong); };
    const at::Tensor distance =
        positions(shape.query_begin, queries).unsqueeze(1) - positions(shape.key_begin, keys).unsqueeze(0);
    at::Tensor seen = distance >= 0;
    if (shape.window > 0) seen = seen.logical_and(distance < shape.window);
    for (const AttentionPiece& piece : attention_pieces(queries, keys, shape)) {
      const auto cut = [&](const at::Tensor& x) {
        return x.slice(0, piece.queries.begin, piece.queries.end).slice(1, piece.keys.begin, piece.keys.end);
      };
      at::Tensor mask = cut(seen);
      if (piece.kind == AttentionPiece::Kind::whole) mask = at::ones_like(mask);
      if (piece.kind == AttentionPiece::Kind::diagonal) mask = at::ones_like(mask).tril();
      if (piece.kind == AttentionPiece::Kind::masked) CHECK(piece.queries.size() <= 256);
      cut(covered).add_(mask);
    }
    REQUIRE(covered.equal(seen.to(at::kInt)));
  }
}

TEST_CASE("a sequence in blocks equals attention over all scores") {
  struct {
    int64_t tokens, heads, kv_heads, width, value_width, window;
  } const cases[] = {{300, 4, 4, 8, 8, 0},    {700, 6, 2, 16, 16, 300}, {600, 4, 1, 8, 8, 40},  {300, 2, 2, 12, 8, 0},
                     {530, 4, 2, 8, 20, 256}, {65, 3, 3, 8, 8, 2},      {513, 2, 1, 8, 8, 1000}};
  at::manual_seed(5);
  for (const auto& c : cases) {
    CAPTURE(c.tokens);
    CAPTURE(c.window);
    check_op_everywhere(
        [&](const std::vector<at::Tensor>& in) { return WholeBlock::apply(in[0], in[1], in[2], c.window); },
        [&](const std::vector<at::Tensor>& in) { return plain_attention(in, 0, c.window); },
        inputs(c.tokens, c.tokens, c.heads, c.kv_heads, c.width, c.value_width));
  }
}

TEST_CASE("blocks join to the whole, in any order") {
  at::manual_seed(4);
  const auto in = inputs(6, 18, 4, 2, 8, 8);
  const at::Tensor want = plain_attention(in, 12, 0);
  BlockResult got;
  for (int64_t begin : {12, 0, 6})
    join(got, attention_block(in[0], in[1].narrow(0, begin, 6), in[2].narrow(0, begin, 6), {12, begin, 0}));
  CHECK(relative_distance(got.out, want) <= 1e-6);
  CHECK(relative_distance(got.log_sum, attention_block(in[0], in[1], in[2], {12, 0, 0}).log_sum) <= 1e-6);
}

TEST_CASE("queries that see no key get nothing, and a block that nobody sees is none") {
  at::manual_seed(6);
  const auto in = inputs(8, 4, 2, 2, 8, 8);
  const BlockResult partly = attention_block(in[0], in[1], in[2], {0, 4, 0});  // keys 4 ... 7, queries 0 ... 7
  CHECK(partly.out.slice(0, 0, 4).abs().max().item<float>() == 0);
  CHECK(partly.log_sum.slice(1, 0, 4).equal(at::full({2, 4}, -INFINITY)));
  CHECK(partly.log_sum.slice(1, 4, 8).isfinite().all().item<bool>());
  CHECK_FALSE(attention_block(in[0], in[1], in[2], {0, 20, 0}).out.defined());
  CHECK_FALSE(attention_block(in[0], in[1], in[2], {20, 0, 5}).out.defined());
  CHECK_FALSE(attention_block_backward(in[0], in[0], in[1], in[2], partly, {0, 20, 0}).q.defined());
}

TEST_CASE("chunks of queries over the keys of their documents") {
  at::manual_seed(8);
  // Documents of 20 and 12 keys; queries 5 ... 9 of the first, 0 ... 3 and 8 ... 11 of the second.
  const std::vector<QueryChunk> chunks = {{0, 5, 0, 5}, {5, 4, 20, 0}, {9, 4, 20, 8}, {13, 0, 32, 0}};
  const auto in = inputs(13, 32, 4, 2, 8, 8);
  for (const int64_t window : {0, 6}) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& x : in) leaves.push_back(x.clone().set_requires_grad(true));
    std::vector<at::Tensor> parts;
    for (const QueryChunk& c : chunks) {
      if (c.size == 0) continue;
      const int64_t keys = c.begin + c.size;
      parts.push_back(plain_attention({leaves[0].narrow(0, c.row, c.size), leaves[1].narrow(0, c.document, keys),
                                       leaves[2].narrow(0, c.document, keys)},
                                      c.begin, window));
    }
    const at::Tensor want = at::cat(parts), grad = at::randn_like(want);
    const auto want_grads = torch::autograd::grad({want}, leaves, {grad});
    const BlockResult got = chunk_attention(in[0], in[1], in[2], chunks, window);
    CHECK(relative_distance(got.out, want) <= 1e-5);
    const BlockGradients grads = chunk_attention_backward(grad, in[0], in[1], in[2], got, chunks, window);
    CHECK(relative_distance(grads.q, want_grads[0]) <= 1e-5);
    CHECK(relative_distance(grads.k, want_grads[1]) <= 1e-5);
    CHECK(relative_distance(grads.v, want_grads[2]) <= 1e-5);
  }
}

}  // namespace hexad::modeling
