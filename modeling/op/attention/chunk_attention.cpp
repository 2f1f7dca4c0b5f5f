#include "modeling/op/attention/chunk_attention.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {
namespace {

at::Tensor zeros_for(const at::Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(at::kFloat)); }

}  // namespace

BlockResult chunk_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<QueryChunk>& chunks, int64_t window) {
  BlockResult result = {at::empty({q.size(0), q.size(1), v.size(2)}, q.options()),
                        at::empty({q.size(1), q.size(0)}, q.options().dtype(at::kFloat))};
  for (const QueryChunk& chunk : chunks) {
    if (chunk.size == 0) continue;
    const int64_t keys = chunk.begin + chunk.size;
    const BlockResult block = attention_block(q.narrow(0, chunk.row, chunk.size), k.narrow(0, chunk.document, keys),
                                              v.narrow(0, chunk.document, keys), BlockShape{chunk.begin, 0, window});
    result.out.narrow(0, chunk.row, chunk.size).copy_(block.out);
    result.log_sum.narrow(1, chunk.row, chunk.size).copy_(block.log_sum);
  }
  return result;
}

BlockGradients chunk_attention_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const BlockResult& joined,
                                        const std::vector<QueryChunk>& chunks, int64_t window) {
  const BlockGradients sums = {zeros_for(q), zeros_for(k), zeros_for(v)};
  for (const QueryChunk& chunk : chunks) {
    if (chunk.size == 0) continue;
    const int64_t keys = chunk.begin + chunk.size;
    const auto queries = [&](const at::Tensor& x) { return x.narrow(0, chunk.row, chunk.size); };
    const auto seen = [&](const at::Tensor& x) { return x.narrow(0, chunk.document, keys); };
    const BlockResult rows = {queries(joined.out), joined.log_sum.narrow(1, chunk.row, chunk.size)};
    const BlockGradients found =
        attention_block_backward(queries(grad), queries(q), seen(k), seen(v), rows, {chunk.begin, 0, window});
    queries(sums.q).add_(found.q);
    seen(sums.k).add_(found.k);
    seen(sums.v).add_(found.v);
  }
  return sums;
}

}  // namespace hexad::modeling
