#include "modeling/moe/dispatch/permutation.hpp"

#include <ATen/Functions.h>

#include <numeric>

#include "modeling/error.hpp"
#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct PermuteRows : Function<PermuteRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& tokens,
                            const at::Tensor& rows) {
    ctx->save_for_backward({rows});
    return spread_rows(x, tokens, rows);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {sum_rows(grads[0], ctx->get_saved_variables()[0]), at::Tensor(), at::Tensor()};
  }
};

struct UnpermuteRows : Function<UnpermuteRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& tokens,
                            const at::Tensor& rows) {
    ctx->save_for_backward({tokens, rows});
    return sum_rows(x, rows);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {spread_rows(grads[0], saved[0], saved[1]), at::Tensor(), at::Tensor()};
  }
};

// A counting sort: stable, and linear in the number of pairs.
Permutation count_and_sort(const at::Tensor& experts, int64_t num_experts) {
  const int64_t topk = experts.size(1), pairs = experts.numel();
  const at::Tensor source = experts.contiguous();
  const int64_t* expert = source.const_data_ptr<int64_t>();
  std::vector<int64_t> next(num_experts + 1, 0);  // first the rows of each expert, one place further on
  for (int64_t i = 0; i < pairs; ++i) ++next[expert[i] + 1];
  std::inclusive_scan(next.begin(), next.end(), next.begin());
  Permutation p;
  p.ends = at::tensor(at::ArrayRef<int64_t>(next).slice(1), at::kInt);
  p.tokens = at::empty({pairs}, source.options()), p.slots = at::empty_like(p.tokens);
  p.rows = at::empty_like(source);
  int64_t *tokens = p.tokens.mutable_data_ptr<int64_t>(), *slots = p.slots.mutable_data_ptr<int64_t>(),
          *rows = p.rows.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t row = next[expert[i]]++;
    tokens[row] = i / topk, slots[row] = i, rows[i] = row;
  }
  return p;
}

}  // namespace

at::Tensor Permutation::counts() const {
  const at::Tensor wide = ends.to(at::kLong);
  return at::diff(wide, 1, 0, at::zeros({1}, wide.options()));
}

std::vector<int64_t> Permutation::counts_on_host() const {
  const at::Tensor host = counts().cpu();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

Permutation sort_by_expert(const Routing& routing, int64_t num_experts) {
  if (routing.kept.defined()) return sort_by_expert(routing.kept);
  const at::Tensor& experts = routing.experts;
  Permutation p;
  if (experts.is_cpu()) {
    p = count_and_sort(experts, num_experts);
  } else if (cuda::fits_expert_sort(experts, num_experts)) {
    const cuda::ExpertOrder order = cuda::sort_by_expert(experts, num_experts);
    p.ends = order.ends, p.tokens = order.tokens, p.slots = order.slots, p.rows = order.rows;
  } else {
    const at::Tensor flat = experts.reshape({-1});
    p.slots = at::argsort(flat, /*stable=*/true, 0, /*descending=*/false);
    p.tokens = at::floor_divide(p.slots, experts.size(1));
    p.rows = at::empty_like(p.slots).scatter_(0, p.slots, at::arange(flat.numel(), flat.options())).view_as(experts);
    p.ends = at::bincount(flat, {}, num_experts).cumsum(0).to(at::kInt);
  }
  p.num_tokens = experts.size(0);
  return p;
}

Permutation sort_by_expert(const at::Tensor& map) {
  const at::Tensor pairs = map.t().nonzero();  // (expert, token), sorted
  Permutation p;
  p.num_tokens = map.size(0);
  p.ends = map.sum(0).cumsum(0).to(at::kInt);
  p.tokens = pairs.select(1, 1).contiguous();
  p.slots = p.tokens * map.size(1) + pairs.select(1, 0);
  return p;
}

Permutation of_experts(const Permutation& all, const Range& range) {
  const int64_t experts = all.ends.size(0);
  if (range.begin < 0 || range.end > experts || range.size() < 0)
    fail("experts {} ... {} of {}", range.begin, range.end, experts);
  if (range.size() == experts) return all;
  const at::Tensor host = all.ends.cpu();
  const int32_t* const ends = host.const_data_ptr<int32_t>();
  const int64_t begin = range.begin > 0 ? ends[range.begin - 1] : 0,
                end = range.size() > 0 ? ends[range.end - 1] : begin;
  Permutation part;
  part.num_tokens = all.num_tokens;
  part.ends = all.ends.slice(0, range.begin, range.end) - begin;
  part.tokens = all.tokens.slice(0, begin, end), part.slots = all.slots.slice(0, begin, end);
  return part;
}

Permutation rows_in_order(int64_t num_rows, const at::Tensor& ends) {
  const at::Tensor order = at::arange(num_rows, ends.options().dtype(at::kLong));
  return {num_rows, ends, order, order, order.unsqueeze(1)};
}

at::Tensor permute(const at::Tensor& tokens, const Permutation& p) {
  return p.rows.defined() ? PermuteRows::apply(tokens, p.tokens, p.rows) : tokens.index_select(0, p.tokens);
}

at::Tensor permute_probs(const at::Tensor& probs, const Permutation& p) {
  return probs.reshape({-1}).index_select(0, p.slots);
}

at::Tensor all_probs(const Routing& routing, int64_t num_experts) {
  return routing.kept.defined() ? routing_matrix(routing, num_experts).probs : routing.probs;
}

at::Tensor unpermute(const at::Tensor& rows, const Permutation& p, const at::Tensor& row_probs) {
  const at::Tensor weighted = row_probs.defined() ? rows * row_probs.unsqueeze(-1) : rows;
  if (p.rows.defined()) return UnpermuteRows::apply(weighted, p.tokens, p.rows).to(rows.scalar_type());
  const at::Tensor wide = weighted.element_size() < 4 ? weighted.to(at::kFloat) : weighted;
  return at::zeros({p.num_tokens, rows.size(1)}, wide.options()).index_add(0, p.tokens, wide).to(rows.scalar_type());
}

at::Tensor spread_rows(const at::Tensor& x, const at::Tensor& tokens, const at::Tensor& rows) {
  return cuda::fits_expert_rows(x) ? cuda::spread_rows(x, rows) : x.index_select(0, tokens);
}

at::Tensor sum_rows(const at::Tensor& x, const at::Tensor& rows) {
  if (cuda::fits_expert_rows(x)) return cuda::sum_rows(x, rows);
  const at::Tensor gathered = x.index_select(0, rows.flatten()).view({rows.size(0), rows.size(1), x.size(1)});
  return gathered.sum(1);  // ATen accumulates 16-bit types in fp32
}

}  // namespace hexad::modeling
