#include "modeling/op/attention_block.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <cmath>
#include <limits>

namespace hexad::modeling {
namespace {

enum class Kernel { none, flash, plain };

bool diagonal(const at::Tensor& q, const at::Tensor& k, const BlockShape& shape) {
  return shape.query_begin == shape.key_begin && q.size(0) == k.size(0);
}
bool whole(const at::Tensor& k, const BlockShape& shape) {
  return shape.key_begin + k.size(0) <= shape.query_begin + 1;
}

Kernel kernel_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const BlockShape& shape) {
  const int64_t last_query = shape.query_begin + q.size(0) - 1, last_key = shape.key_begin + k.size(0) - 1;
  if (q.size(0) == 0 || k.size(0) == 0 || shape.key_begin > last_query) return Kernel::none;
  if (shape.window > 0 && last_key <= shape.query_begin - shape.window) return Kernel::none;
  const bool regular = shape.window == 0 && (diagonal(q, k, shape) || whole(k, shape)) && q.size(2) == v.size(2);
  const bool half = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  const bool device = q.is_cpu() || (half && q.size(2) % 8 == 0 && q.size(2) <= 256);
  return regular && device ? Kernel::flash : Kernel::plain;
}

// [n, H, D] -> [1, H, n, D], each key/value head as often as queries share it.
at::Tensor heads_first(const at::Tensor& x, int64_t heads) {
  return x.repeat_interleave(heads / x.size(1), 1).transpose(0, 1).unsqueeze(0);
}
// The way back, summed over the queries that share a head.
at::Tensor heads_last(const at::Tensor& x, int64_t heads) {
  const at::Tensor rows = x.squeeze(0).transpose(0, 1);
  const int64_t shared = rows.size(1) / heads;
  return shared == 1 ? rows : rows.reshape({rows.size(0), heads, shared, rows.size(2)}).sum(2);
}

BlockResult flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal) {
  if (q.is_cpu()) {
    const auto [out, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads_first(q, q.size(1)), heads_first(k, q.size(1)), heads_first(v, q.size(1)), 0.0, causal);
    return {heads_last(out, q.size(1)), log_sum.squeeze(0)};
  }
  const auto result = at::_flash_attention_forward(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), {}, {}, q.size(0),
                                                   k.size(0), 0.0, causal, /*return_debug_mask=*/false);
  return {std::get<0>(result).squeeze(0), std::get<1>(result).squeeze(0)};
}

BlockGradients flash_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const BlockResult& joined, bool causal) {
  if (q.is_cpu()) {
    const int64_t heads = q.size(1), kv_heads = k.size(1);
    const auto [gq, gk, gv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        heads_first(grad, heads), heads_first(q, heads), heads_first(k, heads), heads_first(v, heads),
        heads_first(joined.out, heads), joined.log_sum.unsqueeze(0).contiguous(), 0.0, causal);
    return {heads_last(gq, heads), heads_last(gk, kv_heads), heads_last(gv, kv_heads)};
  }
  const at::Tensor none;
  const auto [gq, gk, gv] = at::_flash_attention_backward(
      grad.unsqueeze(0), q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), joined.out.unsqueeze(0),
      joined.log_sum.unsqueeze(0).contiguous(), none, none, q.size(0), k.size(0), 0.0, causal,
      at::empty({2}, q.options().dtype(at::kUInt64)), none);
  return {gq.squeeze(0), gk.squeeze(0), gv.squeeze(0)};
}

// fp32 [H, n, m], -inf where a query does not see a key.
at::Tensor scores(const at::Tensor& q, const at::Tensor& k, const BlockShape& shape) {
  const int64_t heads = q.size(1);
  const at::Tensor products = at::matmul(heads_first(q, heads).squeeze(0).to(at::kFloat),
                                         heads_first(k, heads).squeeze(0).to(at::kFloat).transpose(1, 2)) /
                              std::sqrt(static_cast<double>(q.size(2)));
  const auto index = at::TensorOptions(q.device()).dtype(at::kLong);
  const at::Tensor distance = (at::arange(q.size(0), index) + shape.query_begin).unsqueeze(1) -
                              (at::arange(k.size(0), index) + shape.key_begin).unsqueeze(0);
  at::Tensor seen = distance.ge(0);
  if (shape.window > 0) seen = seen.logical_and(distance.lt(shape.window));
  return products.masked_fill(seen.logical_not(), -std::numeric_limits<float>::infinity());
}

BlockResult plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const BlockShape& shape) {
  const at::Tensor s = scores(q, k, shape), log_sum = s.logsumexp(2);
  const at::Tensor p = (s - log_sum.unsqueeze(2)).exp().nan_to_num(0.0);  // a query that sees none of these keys
  const at::Tensor out = at::matmul(p, heads_first(v, q.size(1)).squeeze(0).to(at::kFloat));
  return {out.transpose(0, 1).to(q.scalar_type()), log_sum};
}

BlockGradients plain_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const BlockResult& joined, const BlockShape& shape) {
  const int64_t heads = q.size(1), kv_heads = k.size(1);
  const auto whole_heads = [&](const at::Tensor& x) { return heads_first(x, heads).squeeze(0).to(at::kFloat); };
  const at::Tensor p = (scores(q, k, shape) - joined.log_sum.unsqueeze(2)).exp();
  const at::Tensor g = whole_heads(grad), row = (g * whole_heads(joined.out)).sum(2, /*keepdim=*/true);
  const at::Tensor gs =
      p * (at::matmul(g, whole_heads(v).transpose(1, 2)) - row) / std::sqrt(static_cast<double>(q.size(2)));
  const auto back = [&](const at::Tensor& x, int64_t count, const at::Tensor& like) {
    return heads_last(x.unsqueeze(0), count).to(like.scalar_type());
  };
  return {back(at::matmul(gs, whole_heads(k)), heads, q),
          back(at::matmul(gs.transpose(1, 2), whole_heads(q)), kv_heads, k),
          back(at::matmul(p.transpose(1, 2), g), kv_heads, v)};
}

}  // namespace

BlockResult attention_block(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const BlockShape& shape) {
  switch (kernel_of(q, k, v, shape)) {
    case Kernel::none: return {};
    case Kernel::flash: return flash(q, k, v, diagonal(q, k, shape));
    case Kernel::plain: return plain(q, k, v, shape);
  }
  return {};
}

void join(BlockResult& into, const BlockResult& other) {
  if (!other.out.defined()) return;
  if (!into.out.defined()) {
    into = other;
    return;
  }
  const at::Tensor log_sum = at::logaddexp(into.log_sum, other.log_sum);
  const auto weighted = [&](const BlockResult& part) {
    const at::Tensor weight = (part.log_sum - log_sum).exp().nan_to_num(0.0);  // both may have seen nothing
    return part.out.to(at::kFloat) * weight.transpose(0, 1).unsqueeze(2);
  };
  into.out = (weighted(into) + weighted(other)).to(into.out.scalar_type());
  into.log_sum = log_sum;
}

BlockGradients attention_block_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const BlockResult& joined, const BlockShape& shape) {
  switch (kernel_of(q, k, v, shape)) {
    case Kernel::none: return {};
    case Kernel::flash: return flash_backward(grad, q, k, v, joined, diagonal(q, k, shape));
    case Kernel::plain: return plain_backward(grad, q, k, v, joined, shape);
  }
  return {};
}

}  // namespace hexad::modeling
