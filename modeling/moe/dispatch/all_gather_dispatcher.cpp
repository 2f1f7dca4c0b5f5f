#include <ATen/Functions.h>

#include <algorithm>

#include "modeling/moe/dispatch/expert_dispatcher.hpp"

namespace hexad::modeling {
namespace {

// [T, ...] -> [length, ...], zeros behind.
at::Tensor filled_up(const at::Tensor& x, int64_t length) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = length - shape[0];
  return shape[0] == 0 ? x : at::cat({x, at::zeros(shape, x.options())});
}

// How many tokens each rank has.
std::vector<int64_t> token_counts(const at::Tensor& tokens, const Group& group) {
  const auto options = at::TensorOptions(tokens.device()).dtype(at::kLong);
  const at::Tensor all = at::empty({group.size()}, options);
  group.all_gather(all, at::full({1}, tokens.size(0), options)).wait();
  const at::Tensor host = all.cpu();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

}  // namespace

at::Tensor AllGatherDispatcher::run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                                    const ExpertWeights& weights, const Meanwhile& meanwhile) {
  if (meanwhile) meanwhile();
  const Group& group = ranks_.group;
  const std::vector<int64_t> counts = token_counts(tokens, group);
  const int64_t most = *std::max_element(counts.begin(), counts.end()), all = most * group.size();
  std::vector<int64_t> held;
  for (size_t rank = 0; rank < counts.size(); ++rank)
    for (int64_t t = 0; t < counts[rank]; ++t) held.push_back(static_cast<int64_t>(rank) * most + t);
  const at::Tensor rows = at::tensor(held, at::kLong).to(tokens.device());
  const auto gathered = [&](const at::Tensor& x) {
    return gather_tokens(filled_up(x, most), group).index_select(0, rows);
  };
  Routing everyone{gathered(routing.probs), gathered(routing.experts), {}};
  if (routing.kept.defined()) everyone.kept = gathered(routing.kept.to(at::kByte)).to(at::kBool);
  const at::Tensor summand = run_local_experts(gathered(tokens), everyone, num_experts, weights);
  const at::Tensor placed = at::zeros({all, summand.size(1)}, summand.options()).index_copy(0, rows, summand);
  return reduce_scatter_tokens(placed, group).narrow(0, 0, tokens.size(0));
}

}  // namespace hexad::modeling
