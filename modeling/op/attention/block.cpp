#include "modeling/op/attention/block.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hexad::modeling {
namespace {

using PieceKind = AttentionPiece::Kind;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Queries and keys of one piece.
struct Operands {
  at::Tensor q, k, v;
  double scale;

  int64_t heads() const { return q.size(1); }
  int64_t kv_heads() const { return k.size(1); }
  // Queries that share a key/value head.
  int64_t shared() const { return heads() / kv_heads(); }
};

bool has_flash(const Operands& in) {
  const int64_t width = std::max(in.q.size(2), in.v.size(2));
  const bool half = in.q.scalar_type() == at::kHalf || in.q.scalar_type() == at::kBFloat16;
  return in.q.is_cpu() || (half && width % 8 == 0 && width <= 256);
}

// The kernels want heads of one width: zeros change neither products nor sums.
at::Tensor widened(const at::Tensor& x, int64_t width) {
  return x.size(-1) == width ? x : at::constant_pad_nd(x, {0, width - x.size(-1)});
}
at::Tensor narrowed(const at::Tensor& x, int64_t width) { return x.slice(-1, 0, width); }

// As the CPU's kernels take it, without copying keys for the queries that share them: query heads that share a
// key/value head are elements of a batch. Queries [n, H, D] -> [shared, Hkv, n, D], keys [m, Hkv, D] the same,
// expanded; log-sums [H, n] -> [shared, Hkv, n]; and back, keys' gradients summed.
at::Tensor query_batch(const at::Tensor& x, const Operands& in) {
  return x.unflatten(1, {in.kv_heads(), in.shared()}).permute({2, 1, 0, 3});
}
at::Tensor key_batch(const at::Tensor& x, const Operands& in) {
  return x.transpose(0, 1).unsqueeze(0).expand({in.shared(), -1, -1, -1});
}
at::Tensor sum_batch(const at::Tensor& x, const Operands& in) {
  return x.unflatten(0, {in.kv_heads(), in.shared()}).transpose(0, 1);
}
at::Tensor queries_of(const at::Tensor& batch) { return batch.permute({2, 1, 0, 3}).flatten(1, 2); }
at::Tensor keys_of(const at::Tensor& batch) {
  return (batch.size(0) == 1 ? batch.squeeze(0) : batch.sum(0)).transpose(0, 1);
}
at::Tensor sums_of(const at::Tensor& batch) { return batch.transpose(0, 1).flatten(0, 1); }

BlockResult flash(const Operands& in, bool causal) {
  const int64_t width = std::max(in.q.size(2), in.v.size(2));
  const at::Tensor q = widened(in.q, width), k = widened(in.k, width), v = widened(in.v, width);
  if (q.is_cpu()) {
    const auto [out, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
        query_batch(q, in), key_batch(k, in), key_batch(v, in), 0.0, causal, {}, in.scale);
    return {narrowed(queries_of(out), in.v.size(2)), sums_of(log_sum)};
  }
  const auto result = at::_flash_attention_forward(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), {}, {}, q.size(0),
                                                   k.size(0), 0.0, causal, /*return_debug_mask=*/false, in.scale);
  return {narrowed(std::get<0>(result).squeeze(0), in.v.size(2)), std::get<1>(result).squeeze(0)};
}

BlockGradients flash_backward(const at::Tensor& grad, const Operands& in, const BlockResult& joined, bool causal) {
  const int64_t width = std::max(in.q.size(2), in.v.size(2));
  const at::Tensor q = widened(in.q, width), k = widened(in.k, width), v = widened(in.v, width),
                   g = widened(grad, width), out = widened(joined.out.to(in.q.scalar_type()), width);
  BlockGradients result;
  if (q.is_cpu()) {
    const auto [gq, gk, gv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        query_batch(g, in), query_batch(q, in), key_batch(k, in), key_batch(v, in), query_batch(out, in),
        sum_batch(joined.log_sum, in).contiguous(), 0.0, causal, {}, in.scale);
    result = {queries_of(gq), keys_of(gk), keys_of(gv)};
  } else {
    const at::Tensor none;
    const auto [gq, gk, gv] =
        at::_flash_attention_backward(g.unsqueeze(0), q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), out.unsqueeze(0),
                                      joined.log_sum.unsqueeze(0).contiguous(), none, none, q.size(0), k.size(0), 0.0,
                                      causal, at::empty({2}, q.options().dtype(at::kUInt64)), none, in.scale);
    result = {gq.squeeze(0), gk.squeeze(0), gv.squeeze(0)};
  }
  return {narrowed(result.q, in.q.size(2)), narrowed(result.k, in.k.size(2)), narrowed(result.v, in.v.size(2))};
}

// fp32 [shared, Hkv, n, m], -inf where a query does not see a key; query and key 0 are at these positions.
at::Tensor masked_scores(const Operands& in, const BlockShape& shape) {
  const at::Tensor q = query_batch(in.q, in).to(at::kFloat), k = key_batch(in.k, in).to(at::kFloat);
  const auto index = at::TensorOptions(in.q.device()).dtype(at::kLong);
  const at::Tensor distance = (at::arange(in.q.size(0), index) + shape.query_begin).unsqueeze(1) -
                              (at::arange(in.k.size(0), index) + shape.key_begin).unsqueeze(0);
  at::Tensor seen = distance.ge(0);
  if (shape.window > 0) seen = seen.logical_and(distance.lt(shape.window));
  return (at::matmul(q, k.transpose(2, 3)) * in.scale).masked_fill(seen.logical_not(), kNothing);
}

BlockResult masked(const Operands& in, const BlockShape& shape) {
  const at::Tensor scores = masked_scores(in, shape), log_sum = scores.logsumexp(3);
  const at::Tensor p = (scores - log_sum.unsqueeze(3)).exp().nan_to_num(0.0);  // a query that sees none of these keys
  const at::Tensor out = at::matmul(p, key_batch(in.v, in).to(at::kFloat));
  return {queries_of(out), sums_of(log_sum)};
}

BlockGradients masked_backward(const at::Tensor& grad, const Operands& in, const BlockResult& joined,
                               const BlockShape& shape) {
  const at::Tensor log_sum = sum_batch(joined.log_sum, in).unsqueeze(3);
  const at::Tensor p = (masked_scores(in, shape) - log_sum).exp();
  const at::Tensor g = query_batch(grad, in).to(at::kFloat),
                   row = (g * query_batch(joined.out, in).to(at::kFloat)).sum(3, /*keepdim=*/true);
  const at::Tensor values = key_batch(in.v, in).to(at::kFloat);
  const at::Tensor scores_grad = p * (at::matmul(g, values.transpose(2, 3)) - row) * in.scale;
  return {queries_of(at::matmul(scores_grad, key_batch(in.k, in).to(at::kFloat))),
          keys_of(at::matmul(scores_grad.transpose(2, 3), query_batch(in.q, in).to(at::kFloat))),
          keys_of(at::matmul(p.transpose(2, 3), g))};
}

at::Tensor part(const at::Tensor& x, const model::Range& range) { return x.slice(0, range.begin, range.end); }

Operands operands(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPiece& piece) {
  return {part(q, piece.queries), part(k, piece.keys), part(v, piece.keys),
          1.0 / std::sqrt(static_cast<double>(q.size(2)))};
}

BlockShape shape_of(const AttentionPiece& piece, const BlockShape& block) {
  if (piece.kind == PieceKind::whole) return {piece.keys.size(), 0, 0};  // nothing is masked
  return {block.query_begin + piece.queries.begin, block.key_begin + piece.keys.begin, block.window};
}

BlockResult run_piece(const Operands& in, const AttentionPiece& piece, const BlockShape& shape) {
  if (piece.kind != PieceKind::masked && has_flash(in)) return flash(in, piece.kind == PieceKind::diagonal);
  return masked(in, shape_of(piece, shape));
}

BlockGradients run_piece_backward(const at::Tensor& grad, const Operands& in, const BlockResult& joined,
                                  const AttentionPiece& piece, const BlockShape& shape) {
  if (piece.kind != PieceKind::masked && has_flash(in))
    return flash_backward(grad, in, joined, piece.kind == PieceKind::diagonal);
  return masked_backward(grad, in, joined, shape_of(piece, shape));
}

bool covers(const AttentionPiece& piece, const at::Tensor& x) { return piece.queries.size() == x.size(0); }

constexpr int64_t kTileQueries = 256;

// Adds the pieces of the queries at positions `queries`, over keys at positions `keys`.
void add_tile(std::vector<AttentionPiece>& pieces, const model::Range& queries, const model::Range& keys,
              const BlockShape& shape) {
  const bool windowed = shape.window > 0;
  const model::Range seen = {windowed ? std::max(keys.begin, queries.begin - shape.window + 1) : keys.begin,
                             std::min(keys.end, queries.end)};
  if (seen.begin >= seen.end) return;
  const bool diagonal = seen.begin <= queries.begin && queries.end <= keys.end &&
                        (!windowed || shape.window >= queries.end - queries.begin);
  // Keys that every query of the tile sees: those that the last one still sees and the first one sees already.
  const int64_t end = diagonal ? queries.begin : std::min(queries.begin + 1, seen.end);
  const int64_t begin = windowed ? std::max(seen.begin, queries.end - shape.window) : seen.begin;
  const auto add = [&](int64_t first, int64_t last, PieceKind kind) {
    if (first >= last) return;
    pieces.push_back({{queries.begin - shape.query_begin, queries.end - shape.query_begin},
                      {first - shape.key_begin, last - shape.key_begin},
                      kind});
  };
  if (begin >= end) {
    add(seen.begin, diagonal ? end : seen.end, PieceKind::masked);
  } else {
    add(seen.begin, begin, PieceKind::masked);
    add(begin, end, PieceKind::whole);
    if (!diagonal) add(end, seen.end, PieceKind::masked);
  }
  if (diagonal) add(queries.begin, queries.end, PieceKind::diagonal);
}

}  // namespace

BlockResult attention_block(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const BlockShape& shape) {
  const std::vector<AttentionPiece> pieces = attention_pieces(q.size(0), k.size(0), shape);
  BlockResult result;
  for (size_t i = 0; i < pieces.size();) {
    const model::Range queries = pieces[i].queries;
    BlockResult tile;
    for (; i < pieces.size() && pieces[i].queries == queries; ++i)
      join(tile, run_piece(operands(q, k, v, pieces[i]), pieces[i], shape));
    if (covers(pieces[i - 1], q)) return {tile.out.to(q.scalar_type()), tile.log_sum};
    if (!result.out.defined()) {
      result.out = at::zeros({q.size(0), q.size(1), v.size(2)}, q.options());
      result.log_sum = at::full({q.size(1), q.size(0)}, kNothing, q.options().dtype(at::kFloat));
    }
    part(result.out, queries).copy_(tile.out);
    result.log_sum.slice(1, queries.begin, queries.end).copy_(tile.log_sum);
  }
  return result;
}

void join(BlockResult& into, const BlockResult& other) {
  if (!other.out.defined()) return;
  if (!into.out.defined()) {
    into = other;
    return;
  }
  const at::Tensor log_sum = at::logaddexp(into.log_sum, other.log_sum);
  const auto weighted = [&](const BlockResult& block) {
    const at::Tensor weight = (block.log_sum - log_sum).exp().nan_to_num(0.0);  // both may have seen nothing
    return block.out.to(at::kFloat) * weight.transpose(0, 1).unsqueeze(2);
  };
  into.out = weighted(into) + weighted(other);
  into.log_sum = log_sum;
}

BlockGradients attention_block_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const BlockResult& joined, const BlockShape& shape) {
  BlockGradients sums;
  for (const AttentionPiece& piece : attention_pieces(q.size(0), k.size(0), shape)) {
    const BlockResult rows = {part(joined.out, piece.queries),
                              joined.log_sum.slice(1, piece.queries.begin, piece.queries.end)};
    const BlockGradients found =
        run_piece_backward(part(grad, piece.queries), operands(q, k, v, piece), rows, piece, shape);
    if (!sums.q.defined()) {
      if (covers(piece, q) && piece.keys.size() == k.size(0)) return found;
      const auto zeros = [](const at::Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(at::kFloat)); };
      sums = {zeros(q), zeros(k), zeros(v)};
    }
    part(sums.q, piece.queries).add_(found.q);
    part(sums.k, piece.keys).add_(found.k);
    part(sums.v, piece.keys).add_(found.v);
  }
  return sums;
}

std::vector<AttentionPiece> attention_pieces(int64_t queries, int64_t keys, const BlockShape& shape) {
  const model::Range all = {shape.query_begin, shape.query_begin + queries},
                     held = {shape.key_begin, shape.key_begin + keys};
  const bool aligned = held.end <= all.begin + 1 || (held.begin <= all.begin && all.end <= held.end);
  const int64_t tile = shape.window == 0 && aligned ? std::max<int64_t>(queries, 1) : kTileQueries;
  std::vector<AttentionPiece> pieces;
  for (int64_t begin = all.begin; begin < all.end; begin += tile)
    add_tile(pieces, {begin, std::min(begin + tile, all.end)}, held, shape);
  return pieces;
}

}  // namespace hexad::modeling
