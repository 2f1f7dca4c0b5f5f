#include <ATen/Functions.h>

#include <numeric>
#include <utility>

#include "modeling/error.hpp"
#include "modeling/moe/dispatch/expert_dispatcher.hpp"
#include "modeling/moe/dispatch/permutation.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/host_copy.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows to and from each rank of the group.
struct Traffic {
  Group group;
  std::vector<int64_t> send, receive;
  Traffic reversed() const { return {group, receive, send}; }
};

int64_t sum_of(const std::vector<int64_t>& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

// Rows on their way; what else is computed before take() costs no time.
struct Journey {
  variable_list sent, arriving;
  std::vector<Pending> under_way;

  void start(const variable_list& inputs, const Traffic& traffic) {
    for (const at::Tensor& input : inputs) {
      std::vector<int64_t> shape = input.sizes().vec();
      shape[0] = sum_of(traffic.receive);
      sent.push_back(input.contiguous());
      arriving.push_back(at::empty(shape, input.options()));
      under_way.push_back(traffic.group.all_to_all(arriving.back(), sent.back(), traffic.receive, traffic.send));
    }
  }
  void arrive() {
    for (Pending& pending : under_way) pending.wait();
    sent.clear(), under_way.clear();
  }
};

// Forth: forward; back: what Arrive's backward pass starts and Depart's ends.
struct Exchange : torch::CustomClassHolder {
  Traffic traffic;
  Journey forth, back;
};

c10::IValue shared_by(const c10::intrusive_ptr<Exchange>& exchange) { return c10::IValue::make_capsule(exchange); }

c10::intrusive_ptr<Exchange> shared_in(AutogradContext* ctx) {
  return c10::static_intrusive_pointer_cast<Exchange>(ctx->saved_data["exchange"].toCapsule());
}

// Two nodes, between which other work has its place: autograd runs what was made between them between them backward
// too. One pair for what travels together: its backward pass is one meeting of the ranks, whichever of the gradients a
// rank has. What Depart returns may not be looked at before Arrive.
struct Depart : Function<Depart> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& rows, const std::optional<at::Tensor>& probs,
                               const c10::intrusive_ptr<Exchange>& exchange) {
    ctx->saved_data["exchange"] = shared_by(exchange);
    variable_list inputs = {rows};
    if (probs) inputs.push_back(*probs);
    exchange->forth.start(inputs, exchange->traffic);
    return std::exchange(exchange->forth.arriving, {});
  }
  // The gradients that come here are those of the far side; those of this side are what has arrived.
  static variable_list backward(AutogradContext* ctx, variable_list) {
    const c10::intrusive_ptr<Exchange> exchange = shared_in(ctx);
    exchange->back.arrive();
    variable_list grads = std::exchange(exchange->back.arriving, {});
    grads.resize(3);  // rows, probabilities, and one that is no tensor
    return grads;
  }
};

struct Arrive : Function<Arrive> {
  static variable_list forward(AutogradContext* ctx, at::TensorList arriving,
                               const c10::intrusive_ptr<Exchange>& exchange) {
    ctx->saved_data["exchange"] = shared_by(exchange);
    exchange->forth.arrive();
    return arriving.vec();
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const c10::intrusive_ptr<Exchange> exchange = shared_in(ctx);
    exchange->back.start(grads, exchange->traffic.reversed());
    grads.emplace_back();
    return grads;
  }
};

variable_list travel(const at::Tensor& rows, const std::optional<at::Tensor>& probs, const Traffic& traffic,
                     const ExpertDispatcher::Meanwhile& meanwhile = {}) {
  const auto exchange = c10::make_intrusive<Exchange>();
  exchange->traffic = traffic;
  const variable_list departed = Depart::apply(rows, probs, exchange);
  if (meanwhile) meanwhile();
  return Arrive::apply(at::TensorList(departed), exchange);
}

// Rows of each (sending rank, local expert), int64 [ranks, experts]. sent: this rank's, [expert ranks, experts].
at::Tensor arriving_counts(const at::Tensor& sent, const ExpertGroup& ranks) {
  const at::Tensor copies = sent.repeat_interleave(ranks.tensor_ranks, 0, ranks.group.size()).contiguous();
  const at::Tensor arriving = at::empty_like(copies);
  const std::vector<int64_t> one_each(static_cast<size_t>(ranks.group.size()), 1);
  ranks.group.all_to_all(arriving, copies, one_each, one_each).wait();
  return arriving;
}

// Every part of an expert's width sees the expert's rows: runs of rows are repeated for each tensor-parallel rank.
Permutation repeated(const Permutation& order, const std::vector<int64_t>& rows_by_expert_rank, int64_t copies) {
  if (copies == 1) return order;
  std::vector<int64_t> index;
  int64_t begin = 0;
  for (int64_t rows : rows_by_expert_rank) {
    for (int64_t copy = 0; copy < copies; ++copy)
      for (int64_t row = begin; row < begin + rows; ++row) index.push_back(row);
    begin += rows;
  }
  const at::Tensor rows = on_device(at::tensor(index, at::kLong), order.tokens.device());
  return {order.num_tokens, order.ends, order.tokens.index_select(0, rows), order.slots.index_select(0, rows), {}};
}

}  // namespace

Range ExpertGroup::local(int64_t num_experts) const {
  const int64_t ranks = expert_ranks(), each = num_experts / ranks;
  if (num_experts % ranks != 0)
    fail("{} experts do not divide over {} expert-parallel ranks: take a divisor of {}", num_experts, ranks,
         num_experts);
  const int64_t rank = group.rank() / tensor_ranks;
  return {rank * each, (rank + 1) * each};
}

at::Tensor AllToAllDispatcher::run(const at::Tensor& tokens, const Routing& routing, int64_t num_experts,
                                   const ExpertWeights& weights, const Meanwhile& meanwhile) {
  const Permutation order = sort_by_expert(routing, num_experts);
  const int64_t experts = weights.local.size(), expert_ranks = ranks_.expert_ranks(), copies = ranks_.tensor_ranks;
  const at::Tensor sent = order.counts().view({expert_ranks, -1}), arriving = arriving_counts(sent, ranks_);
  HostCopy counts(at::cat({sent.sum(1), arriving.sum(1)}));
  at::Tensor rows = copies == 1 ? permute(tokens, order) : at::Tensor();  // while the counts come
  const std::vector<int64_t> known = counts.wait(), by_expert_rank(known.begin(), known.begin() + expert_ranks);
  Traffic traffic{ranks_.group, {}, {known.begin() + expert_ranks, known.end()}};
  for (const int64_t count : by_expert_rank)
    traffic.send.insert(traffic.send.end(), static_cast<size_t>(copies), count);
  const Permutation departing = repeated(order, by_expert_rank, copies);
  if (copies > 1) rows = permute(tokens, departing);
  const at::Tensor probs = permute_probs(all_probs(routing, num_experts), departing);
  const variable_list arrived = travel(rows, probs, traffic, meanwhile);
  rows = at::Tensor();
  // What arrives is in order of rank, then of expert.
  const std::optional<int64_t> total = sum_of(traffic.receive);
  const at::Tensor runs = at::repeat_interleave(arriving.flatten(), total);
  const Routing local{arrived[1], runs.remainder(experts).unsqueeze(1), {}};
  const at::Tensor out = run_experts(arrived[0], arrived[1], sort_by_expert(local, experts), weights);
  return unpermute(travel(out, std::nullopt, traffic.reversed())[0], departing);
}

}  // namespace hexad::modeling
