#include "modeling/op/chunk_attention.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

namespace hexad::modeling {
namespace {

at::Tensor zeros_for(const at::Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(at::kFloat)); }

struct SequenceAttention : torch::autograd::Function<SequenceAttention> {
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

at::Tensor sequence_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t window) {
  return SequenceAttention::apply(q, k, v, window);
}

}  // namespace hexad::modeling
