#include "modeling/parallel/context/head_exchange.hpp"

#include <ATen/Functions.h>

#include "modeling/error.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Part r of every rank's tensor goes to rank r: [ranks, ...] -> [ranks, ...].
at::Tensor transpose_ranks(const at::Tensor& parts, const Group& group) {
  const at::Tensor in = parts.contiguous();
  at::Tensor out = at::empty_like(in);
  group.all_to_all(out, in, {}, {}).wait();
  return out;
}

// [T / ranks, ranks, F]: part r of the features is for rank r -> [T, F] of this rank's part, tokens in their order.
at::Tensor features_of_all(const at::Tensor& x, const at::Tensor& order, const Group& group) {
  return transpose_ranks(x.transpose(0, 1), group).flatten(0, 1).index_select(0, order);
}
// The way back, and the transposed map: [T, F] -> [T / ranks, ranks, F].
at::Tensor tokens_of_this(const at::Tensor& x, const at::Tensor& inverse, const Group& group) {
  const int64_t ranks = group.size();
  return transpose_ranks(x.index_select(0, inverse).unflatten(0, {ranks, x.size(0) / ranks}), group).transpose(0, 1);
}

struct TokensForHeads : Function<TokensForHeads> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& order,
                            const at::Tensor& inverse, const Group& group) {
    ctx->saved_data["inverse"] = inverse;
    ctx->saved_data["group"] = reinterpret_cast<int64_t>(group.native());
    return features_of_all(x, order, group);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Group group(reinterpret_cast<c10d::ProcessGroup*>(ctx->saved_data["group"].toInt()));
    return {tokens_of_this(grads[0], ctx->saved_data["inverse"].toTensor(), group), {}, {}, {}};
  }
};

struct HeadsForTokens : Function<HeadsForTokens> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& order,
                            const at::Tensor& inverse, const Group& group) {
    ctx->saved_data["order"] = order;
    ctx->saved_data["group"] = reinterpret_cast<int64_t>(group.native());
    return tokens_of_this(x, inverse, group);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Group group(reinterpret_cast<c10d::ProcessGroup*>(ctx->saved_data["group"].toInt()));
    return {features_of_all(grads[0], ctx->saved_data["order"].toTensor(), group), {}, {}, {}};
  }
};

// [n, heads, D] -> [n, ranks, heads / ranks * D], heads repeated where there are fewer of them than ranks.
at::Tensor features_by_rank(const at::Tensor& x, int64_t ranks) {
  const int64_t heads = x.size(1);
  const at::Tensor shared = heads < ranks ? x.repeat_interleave(ranks / heads, 1) : x;
  return shared.reshape({x.size(0), ranks, shared.size(1) / ranks * x.size(2)});
}

}  // namespace

bool heads_divide(int64_t heads, int64_t kv_heads, int64_t ranks) {
  return heads % ranks == 0 && (kv_heads % ranks == 0 || ranks % kv_heads == 0);
}

HeadExchange::HeadExchange(const Group& group, const std::vector<int64_t>& rows, at::Device device) : group_(group) {
  std::vector<int64_t> inverse(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) inverse[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
  order_ = at::tensor(rows, at::kLong).to(device);
  inverse_ = at::tensor(inverse, at::kLong).to(device);
}

at::Tensor HeadExchange::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Attend& inner) const {
  const int64_t ranks = group_.size(), tokens = q.size(0);
  if (!heads_divide(q.size(1), k.size(1), ranks))
    fail("a2a: {} heads and {} key/value heads do not divide over {} ranks", q.size(1), k.size(1), ranks);
  const int64_t heads = q.size(1) / ranks, kv_heads = std::max<int64_t>(1, k.size(1) / ranks);
  const std::vector<at::Tensor> mine = {features_by_rank(q, ranks), features_by_rank(k, ranks),
                                        features_by_rank(v, ranks)};
  const at::Tensor joined = TokensForHeads::apply(at::cat(mine, 2), order_, inverse_, group_);
  const std::vector<at::Tensor> all = joined.split_with_sizes({mine[0].size(2), mine[1].size(2), mine[2].size(2)}, 1);
  const auto with_heads = [](const at::Tensor& x, int64_t count) { return x.unflatten(1, {count, x.size(1) / count}); };
  const at::Tensor out = inner(with_heads(all[0], heads), with_heads(all[1], kv_heads), with_heads(all[2], kv_heads));
  const at::Tensor back = HeadsForTokens::apply(out.flatten(1), order_, inverse_, group_);
  return back.reshape({tokens, q.size(1), v.size(2)});
}

}  // namespace hexad::modeling
