// Ring attention.
#include "modeling/parallel/context/attention.hpp"

#include <ATen/Functions.h>

#include "modeling/op/attention/block.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One of the two chunks of a document that a rank holds: where it lies among the rank's tokens, and in the document.
struct Chunk {
  int64_t local, begin, size;
};

// The chunks of rank `rank`, document by document, the front one first.
std::vector<std::array<Chunk, 2>> chunks_of(at::IntArrayRef cu_seqlens, int64_t ranks, int64_t rank) {
  std::vector<std::array<Chunk, 2>> result;
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t size = (cu_seqlens[i + 1] - cu_seqlens[i]) / (2 * ranks), local = cu_seqlens[i] / ranks;
    result.push_back({Chunk{local, rank * size, size}, Chunk{local + size, (2 * ranks - 1 - rank) * size, size}});
  }
  return result;
}

at::Tensor rows(const at::Tensor& x, const Chunk& chunk) { return x.narrow(0, chunk.local, chunk.size); }

// A tensor on its way round the ring.
class Ring {
 public:
  explicit Ring(const Group& group) : group_(group) {}
  // Sends `out` to the next rank and receives as much from the previous one.
  void start(const at::Tensor& out, int32_t tag) {
    out_ = out.contiguous();
    in_ = at::empty_like(out_);
    const int64_t ranks = group_.size(), next = (group_.rank() + 1) % ranks,
                  previous = (group_.rank() + ranks - 1) % ranks;
    moving_ = group_.exchange({{in_, previous, tag, true}, {out_, next, tag, false}});
  }
  at::Tensor finish() {
    moving_.wait();
    return in_;
  }

 private:
  Group group_;
  at::Tensor out_, in_;
  Pending moving_;
};

// Calls visit(query chunk, key chunk, shape) for every pair of a document's chunks of which the queries see something.
template <typename Visit>
void each_pair(at::IntArrayRef cu_seqlens, const Group& group, int64_t source, int64_t window, Visit&& visit) {
  const auto queries = chunks_of(cu_seqlens, group.size(), group.rank()),
             keys = chunks_of(cu_seqlens, group.size(), source);
  for (size_t i = 0; i < queries.size(); ++i) {
    for (const Chunk& query : queries[i]) {
      for (const Chunk& key : keys[i]) {
        if (query.size > 0 && key.begin <= query.begin) visit(query, key, BlockShape{query.begin, key.begin, window});
      }
    }
  }
}

struct RingFunction : Function<RingFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Group& group, at::IntArrayRef cu_seqlens, int64_t window) {
    const int64_t ranks = group.size(), tokens = q.size(0), heads = q.size(1);
    const at::TensorOptions fp32 = q.options().dtype(at::kFloat);
    at::Tensor sum = at::zeros({tokens, heads, v.size(2)}, fp32);
    at::Tensor log_sum = at::full({heads, tokens}, -std::numeric_limits<float>::infinity(), fp32);
    at::Tensor kv = at::cat({k.flatten(1), v.flatten(1)}, 1);
    for (int64_t step = 0; step < ranks; ++step) {
      Ring ring(group);
      if (step + 1 < ranks) ring.start(kv, static_cast<int32_t>(step));
      const at::Tensor keys = part(kv, k, 0), values = part(kv, v, k.size(1) * k.size(2));
      each_pair(cu_seqlens, group, (group.rank() + ranks - step) % ranks, window,
                [&](const Chunk& query, const Chunk& key, const BlockShape& shape) {
                  const BlockResult block = attention_block(rows(q, query), rows(keys, key), rows(values, key), shape);
                  if (!block.out.defined()) return;
                  BlockResult joined{rows(sum, query), log_sum.narrow(1, query.local, query.size)};
                  join(joined, block);
                  rows(sum, query).copy_(joined.out);
                  log_sum.narrow(1, query.local, query.size).copy_(joined.log_sum);
                });
      if (step + 1 < ranks) kv = ring.finish();
    }
    const at::Tensor out = sum.to(q.scalar_type());
    ctx->save_for_backward({q, k, v, out, log_sum});
    ctx->saved_data["group"] = reinterpret_cast<int64_t>(group.native());
    ctx->saved_data["cu_seqlens"] = cu_seqlens.vec();
    ctx->saved_data["window"] = window;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &log_sum = saved[4];
    const Group group(reinterpret_cast<c10d::ProcessGroup*>(ctx->saved_data["group"].toInt()));
    const std::vector<int64_t> cu_seqlens = ctx->saved_data["cu_seqlens"].toIntVector();
    const int64_t window = ctx->saved_data["window"].toInt(), ranks = group.size();
    const int64_t key_width = k.size(1) * k.size(2);
    at::Tensor grad_q = at::zeros(q.sizes(), q.options().dtype(at::kFloat));
    at::Tensor kv = at::cat({k.flatten(1), v.flatten(1)}, 1);
    at::Tensor grad_kv = at::zeros(kv.sizes(), kv.options().dtype(at::kFloat));
    for (int64_t step = 0; step < ranks; ++step) {
      Ring keys_ring(group), grads_ring(group);
      if (step + 1 < ranks) keys_ring.start(kv, static_cast<int32_t>(2 * step));
      const at::Tensor keys = part(kv, k, 0), values = part(kv, v, key_width);
      at::Tensor grad_keys = part(grad_kv, k, 0), grad_values = part(grad_kv, v, key_width);
      each_pair(cu_seqlens, group, (group.rank() + ranks - step) % ranks, window,
                [&](const Chunk& query, const Chunk& key, const BlockShape& shape) {
                  const BlockResult joined{rows(out, query), log_sum.narrow(1, query.local, query.size)};
                  const BlockGradients block = attention_block_backward(
                      rows(grads[0], query), rows(q, query), rows(keys, key), rows(values, key), joined, shape);
                  if (!block.q.defined()) return;
                  rows(grad_q, query).add_(block.q);
                  rows(grad_keys, key).add_(block.k);
                  rows(grad_values, key).add_(block.v);
                });
      // The gradients go on with their keys; after the last step one hop brings them home.
      if (ranks > 1) grads_ring.start(grad_kv, static_cast<int32_t>(2 * step + 1));
      if (step + 1 < ranks) kv = keys_ring.finish();
      if (ranks > 1) grad_kv = grads_ring.finish();
    }
    return {grad_q.to(q.scalar_type()),
            part(grad_kv, k, 0).to(k.scalar_type()),
            part(grad_kv, v, key_width).to(v.scalar_type()),
            at::Tensor(),
            at::Tensor(),
            at::Tensor()};
  }

 private:
  // The columns of `joined` from `first` on, as [tokens, heads, width] like `like`: a view.
  static at::Tensor part(const at::Tensor& joined, const at::Tensor& like, int64_t first) {
    return joined.narrow(1, first, like.size(1) * like.size(2)).unflatten(1, {like.size(1), like.size(2)});
  }
};

}  // namespace

at::Tensor ring_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::IntArrayRef cu_seqlens,
                          int64_t window, const Group& group) {
  return RingFunction::apply(q, k, v, group, cu_seqlens, window);
}

}  // namespace hexad::modeling
