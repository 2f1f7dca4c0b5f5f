// Context parallelism by gathering keys and values.
#include "modeling/parallel/context/attention.hpp"

#include <ATen/Functions.h>

#include "modeling/layout/context_shards.hpp"
#include "modeling/op/attention/chunk_attention.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// This rank's queries among the keys of the whole row.
std::vector<QueryChunk> own_chunks(const std::vector<int64_t>& cu_seqlens, const Group& group) {
  const int64_t ranks = group.size(), rank = group.rank();
  std::vector<QueryChunk> chunks;
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t size = (cu_seqlens[i + 1] - cu_seqlens[i]) / (2 * ranks), row = cu_seqlens[i] / ranks;
    chunks.push_back({row, size, cu_seqlens[i], rank * size});
    chunks.push_back({row + size, size, cu_seqlens[i], (2 * ranks - 1 - rank) * size});
  }
  return chunks;
}

// Keys and values side by side, [tokens, Hkv * (D + Dv)], so that they travel together.
struct KeyValues {
  explicit KeyValues(const at::Tensor& k, const at::Tensor& v)
      : heads(k.size(1)), width(k.size(2)), value_width(v.size(2)) {}

  at::Tensor joined(const at::Tensor& k, const at::Tensor& v) const { return at::cat({k.flatten(1), v.flatten(1)}, 1); }
  at::Tensor keys(const at::Tensor& kv) const { return kv.narrow(1, 0, heads * width).unflatten(1, {heads, width}); }
  at::Tensor values(const at::Tensor& kv) const {
    return kv.narrow(1, heads * width, heads * value_width).unflatten(1, {heads, value_width});
  }

  int64_t heads, width, value_width;
};

// Of the whole row, in its order, from every rank's part.
at::Tensor whole_row(const at::Tensor& part, const at::Tensor& order, const Group& group) {
  at::Tensor parts = at::empty({part.size(0) * group.size(), part.size(1)}, part.options());
  group.all_gather(parts, part).wait();
  return parts.index_select(0, order);
}

// This rank's part of the sum over ranks.
at::Tensor own_part(at::Tensor row, const at::Tensor& order, const Group& group) {
  const at::Tensor parts = at::empty_like(row).index_copy_(0, order, row);
  at::Tensor part = at::empty({row.size(0) / group.size(), row.size(1)}, row.options());
  row.reset();
  group.reduce_scatter(part, parts).wait();
  return part;
}

struct GatheredAttention : Function<GatheredAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Group& group, const std::vector<int64_t>& cu_seqlens, int64_t window) {
    const KeyValues layout(k, v);
    const at::Tensor row = whole_row(layout.joined(k, v), row_order(cu_seqlens, group, q.device()), group);
    const BlockResult result =
        chunk_attention(q, layout.keys(row), layout.values(row), own_chunks(cu_seqlens, group), window);
    ctx->save_for_backward({q, k, v, result.out, result.log_sum});
    ctx->saved_data["group"] = reinterpret_cast<int64_t>(group.native());
    ctx->saved_data["cu_seqlens"] = cu_seqlens;
    ctx->saved_data["window"] = window;
    return result.out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2];
    const Group group(reinterpret_cast<c10d::ProcessGroup*>(ctx->saved_data["group"].toInt()));
    const std::vector<int64_t> cu_seqlens = ctx->saved_data["cu_seqlens"].toIntVector();
    const int64_t window = ctx->saved_data["window"].toInt();
    const KeyValues layout(k, v);
    const at::Tensor order = row_order(cu_seqlens, group, q.device());
    at::Tensor row = whole_row(layout.joined(k, v), order, group);
    BlockGradients found = chunk_attention_backward(grads[0], q, layout.keys(row), layout.values(row),
                                                    {saved[3], saved[4]}, own_chunks(cu_seqlens, group), window);
    row.reset();
    at::Tensor grad_row = layout.joined(found.k, found.v);
    found.k.reset(), found.v.reset();  // whole rows: no more of them at a time than needed
    const at::Tensor kv = own_part(std::move(grad_row), order, group);
    return {found.q.to(q.scalar_type()),
            layout.keys(kv).to(k.scalar_type()),
            layout.values(kv).to(v.scalar_type()),
            {},
            {},
            {}};
  }

 private:
  static at::Tensor row_order(const std::vector<int64_t>& cu_seqlens, const Group& group, at::Device device) {
    return at::tensor(layout::gathered_positions(cu_seqlens, group.size()), at::kLong).to(device);
  }
};

}  // namespace

at::Tensor gathered_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::IntArrayRef cu_seqlens,
                              int64_t window, const Group& group) {
  return GatheredAttention::apply(q, k, v, group, cu_seqlens.vec(), window);
}

}  // namespace hexad::modeling
