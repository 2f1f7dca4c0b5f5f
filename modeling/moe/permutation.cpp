#include "modeling/moe/permutation.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<int64_t> counts_on_host(const at::Tensor& counts) {
  const at::Tensor host = counts.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

// Sum over the k rows of each token, in fp32.
at::Tensor sum_of_rows(const at::Tensor& x, const at::Tensor& rows) {
  const at::Tensor gathered = x.index_select(0, rows.flatten()).view({rows.size(0), rows.size(1), x.size(1)});
  return gathered.sum(1);  // ATen accumulates 16-bit types in fp32
}

struct PermuteRows : torch::autograd::Function<PermuteRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& tokens,
                            const at::Tensor& rows) {
    ctx->save_for_backward({rows});
    return x.index_select(0, tokens);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {sum_of_rows(grads[0].contiguous(), ctx->get_saved_variables()[0]), at::Tensor(), at::Tensor()};
  }
};

struct UnpermuteRows : torch::autograd::Function<UnpermuteRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& tokens,
                            const at::Tensor& rows) {
    ctx->save_for_backward({tokens});
    return sum_of_rows(x, rows);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const at::Tensor tokens = ctx->get_saved_variables()[0];
    return {grads[0].index_select(0, tokens), at::Tensor(), at::Tensor()};
  }
};

// A counting sort: stable, and linear in the number of pairs.
Permutation count_and_sort(const at::Tensor& experts, int64_t num_experts) {
  const int64_t topk = experts.size(1), pairs = experts.numel();
  const at::Tensor source = experts.contiguous();
  const int64_t* expert = source.const_data_ptr<int64_t>();
  Permutation p;
  p.counts.assign(num_experts, 0);
  for (int64_t i = 0; i < pairs; ++i) ++p.counts[expert[i]];
  std::vector<int64_t> next(num_experts, 0);
  std::exclusive_scan(p.counts.begin(), p.counts.end(), next.begin(), int64_t{0});
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

Permutation sort_by_expert(const Routing& routing, int64_t num_experts) {
  if (routing.kept.defined()) return sort_by_expert(routing.kept);
  const at::Tensor& experts = routing.experts;
  Permutation p;
  if (experts.is_cpu()) {
    p = count_and_sort(experts, num_experts);
  } else {
    const at::Tensor flat = experts.reshape({-1});
    p.slots = at::argsort(flat, /*stable=*/true, 0, /*descending=*/false);
    p.tokens = at::floor_divide(p.slots, experts.size(1));
    p.rows = at::empty_like(p.slots).scatter_(0, p.slots, at::arange(flat.numel(), flat.options())).view_as(experts);
    p.counts = counts_on_host(at::bincount(flat, {}, num_experts));
  }
  p.num_tokens = experts.size(0);
  return p;
}

Permutation sort_by_expert(const at::Tensor& map) {
  const at::Tensor pairs = map.t().nonzero();  // (expert, token), sorted
  Permutation p;
  p.num_tokens = map.size(0);
  p.counts = counts_on_host(map.sum(0));
  p.tokens = pairs.select(1, 1).contiguous();
  p.slots = p.tokens * map.size(1) + pairs.select(1, 0);
  return p;
}

Permutation of_experts(const Permutation& all, const Range& range) {
  if (range.begin < 0 || range.end > int64_t(all.counts.size()) || range.size() < 0)
    fail("experts {} ... {} of {}", range.begin, range.end, all.counts.size());
  if (range.size() == int64_t(all.counts.size())) return all;
  const auto first = all.counts.begin();
  const int64_t skipped = std::accumulate(first, first + range.begin, int64_t{0});
  const int64_t rows = std::accumulate(first + range.begin, first + range.end, int64_t{0});
  Permutation part;
  part.num_tokens = all.num_tokens;
  part.counts.assign(first + range.begin, first + range.end);
  part.tokens = all.tokens.narrow(0, skipped, rows), part.slots = all.slots.narrow(0, skipped, rows);
  return part;
}

at::Tensor permute(const at::Tensor& tokens, const Permutation& p) {
  return p.rows.defined() ? PermuteRows::apply(tokens, p.tokens, p.rows) : tokens.index_select(0, p.tokens);
}

at::Tensor permute_probs(const at::Tensor& probs, const Permutation& p) {
  return probs.reshape({-1}).index_select(0, p.slots);
}

at::Tensor permute_probs(const Routing& routing, int64_t num_experts, const Permutation& p) {
  return permute_probs(routing.kept.defined() ? routing_matrix(routing, num_experts).probs : routing.probs, p);
}

at::Tensor unpermute(const at::Tensor& rows, const Permutation& p, const at::Tensor& row_probs) {
  const at::Tensor weighted = row_probs.defined() ? rows * row_probs.unsqueeze(-1) : rows;
  if (p.rows.defined()) return UnpermuteRows::apply(weighted, p.tokens, p.rows).to(rows.scalar_type());
  const at::Tensor wide = weighted.element_size() < 4 ? weighted.to(at::kFloat) : weighted;
  return at::zeros({p.num_tokens, rows.size(1)}, wide.options()).index_add(0, p.tokens, wide).to(rows.scalar_type());
}

at::Tensor sort_chunks(const at::Tensor& x, const std::vector<int64_t>& sizes, const std::vector<int64_t>& order) {
  const std::vector<at::Tensor> chunks = x.split_with_sizes(sizes);
  std::vector<at::Tensor> sorted;
  for (int64_t i : order) sorted.push_back(chunks.at(i));
  return at::cat(sorted);
}

}  // namespace hexad::modeling
