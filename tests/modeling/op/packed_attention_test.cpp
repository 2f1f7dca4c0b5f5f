#include "modeling/op/attention/packed_attention.hpp"

#include "modeling/error.hpp"
#include "tests/modeling/support/allocated_bytes.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

using Offsets = std::vector<int64_t>;

PackedLayout layout_of(const Offsets& offsets, at::Device device = at::kCPU) {
  return packed_layout(at::tensor(offsets), device);
}

// Scores of every pair of tokens, masked to the same sequence, the past and the window.
at::Tensor reference(const std::vector<at::Tensor>& in, const Offsets& offsets, int64_t window) {
  const at::Tensor &q = in[0], &k = in[1], &v = in[2];
  const int64_t tokens = q.size(0), group = q.size(1) / k.size(1);
  at::Tensor sequence = at::zeros({tokens}, q.options().dtype(at::kLong));
  for (size_t i = 0; i + 1 < offsets.size(); ++i) sequence.slice(0, offsets[i], offsets[i + 1]).fill_(int64_t(i));
  const at::Tensor index = at::arange(tokens, sequence.options());
  const at::Tensor distance = index.unsqueeze(1) - index.unsqueeze(0);
  at::Tensor seen = (sequence.unsqueeze(1) == sequence.unsqueeze(0)).logical_and(distance >= 0);
  if (window > 0) seen = seen.logical_and(distance < window);
  const at::Tensor keys = k.repeat_interleave(group, 1).transpose(0, 1);
  const at::Tensor values = v.repeat_interleave(group, 1).transpose(0, 1);
  const at::Tensor scores = at::matmul(q.transpose(0, 1), keys.transpose(1, 2)) / std::sqrt(double(q.size(2)));
  return at::matmul(scores.masked_fill(seen.logical_not(), -INFINITY).softmax(-1), values).transpose(0, 1);
}

void check(const Offsets& offsets, int64_t window, int64_t heads, int64_t kv_heads, int64_t value_dim = 16) {
  CAPTURE(window);
  at::manual_seed(4);
  const int64_t tokens = offsets.back();
  const auto op = [&](const std::vector<at::Tensor>& in) {
    return packed_attention(in[0], in[1], in[2], layout_of(offsets, in[0].device()), window);
  };
  const auto plain = [&](const std::vector<at::Tensor>& in) { return reference(in, offsets, window); };
  const std::vector<at::Tensor> inputs = {at::randn({tokens, heads, 16}), at::randn({tokens, kv_heads, 16}),
                                          at::randn({tokens, kv_heads, value_dim})};
  check_op_everywhere(op, plain, inputs);
  check_op(op, plain, inputs, at::kCPU, at::kDouble, 1e-12);  // which the CPU's own kernels do not take
}

TEST_CASE("packed attention equals masked attention over all tokens") { check({0, 5, 6, 40, 47, 54}, 0, 6, 2); }
TEST_CASE("packed attention with a sliding window") { check({0, 19, 22, 60}, 7, 4, 4); }
TEST_CASE("packed attention with a window longer than every sequence") { check({0, 9, 12}, 100, 4, 1); }
TEST_CASE("packed attention passes over empty sequences") { check({0, 0, 4, 4, 11, 11}, 0, 2, 2); }
TEST_CASE("packed attention with values narrower or wider than keys") {
  check({0, 5, 6, 40}, 0, 4, 4, 10);
  check({0, 19, 22}, 7, 4, 2, 24);
}
TEST_CASE("packed attention over long rows") {
  check({0, 1100, 1130}, 0, 4, 2);
  check({0, 30, 1330}, 200, 2, 1, 24);
}
TEST_CASE("packed attention over one sequence") { check({0, 33}, 0, 3, 3); }

TEST_CASE("packed attention: no sequence sees another one") {
  at::manual_seed(5);
  const PackedLayout layout = layout_of({0, 8, 20});
  const at::Tensor q = at::randn({20, 2, 8}), k = at::randn({20, 2, 8}), v = at::randn({20, 2, 8});
  const at::Tensor before = packed_attention(q, k, v, layout);
  k.slice(0, 0, 8).normal_();
  v.slice(0, 0, 8).normal_();
  CHECK(packed_attention(q, k, v, layout).slice(0, 8).equal(before.slice(0, 8)));
}

TEST_CASE("packed attention's backward pass holds no gradient of all tokens for each sequence") {
  constexpr int64_t sequences = 64, length = 8;
  Offsets offsets(sequences + 1);
  for (int64_t i = 0; i <= sequences; ++i) offsets[i] = i * length - (i == sequences);
  const int64_t tokens = offsets.back(), bytes = tokens * 2 * 8 * 4;
  const auto leaf = [&] { return at::randn({tokens, 2, 8}).requires_grad_(true); };
  const at::Tensor q = leaf(), k = leaf(), v = leaf();
  const at::Tensor out = packed_attention(q, k, v, layout_of(offsets));
  const AllocatedBytes allocated;
  torch::autograd::grad({out}, {q, k, v}, {at::ones_like(out)});
  CHECK(allocated.total() <= 30 * bytes);
}

TEST_CASE("packed layout: positions and refusals") {
  const PackedLayout layout = layout_of({0, 2, 2, 5});
  CHECK(layout.max_length == 3);
  CHECK(layout.positions.equal(at::tensor(Offsets{0, 1, 0, 1, 2})));
  CHECK_THROWS_WITH_AS(layout_of({1, 3}), "cu_seqlens: starts at 1, wanted 0", Error);
  CHECK_THROWS_WITH_AS(layout_of({0, 3, 2}), "cu_seqlens: decreases from 3 to 2 at index 2", Error);
  const at::Tensor x = at::zeros({4, 1, 8});
  CHECK_THROWS_WITH_AS(packed_attention(x, x, x, layout), "packed attention: got 4 tokens, but cu_seqlens ends at 5",
                       Error);
}

}  // namespace
}  // namespace hexad::modeling
