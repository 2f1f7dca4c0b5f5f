#include "plugins/native/parallel/replica.hpp"

#include <ATen/Functions.h>
#include <fmt/ranges.h>

#include "modeling/backend/host_groups.hpp"
#include "modeling/error.hpp"

namespace hexad::native {

std::chrono::milliseconds Replica::timeout() const {
  return group_.native()->getBackend(c10d::ProcessGroup::BackendType::GLOO)->getBackendOptions()->timeout;
}

void Replica::sum(const at::Tensor& x) const {
  if (alone()) return;
  if (x.is_cuda()) {
    c10d::AllreduceOptions options;
    options.asyncOp = false;  // on the current stream
    std::vector<at::Tensor> tensors = {x};
    group_.native()->allreduce(tensors, options);
    return;
  }
  const at::Tensor parts = at::empty({group_.size(), x.numel()}, x.options());
  group_.all_gather(parts, x).wait();
  at::Tensor total = x.view({-1});
  total.copy_(parts[0]);
  for (int64_t rank = 1; rank < group_.size(); ++rank) total.add_(parts[rank]);
}

void Replica::largest(const at::Tensor& x) const {
  if (x.is_cuda()) {
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX, options.asyncOp = false;
    std::vector<at::Tensor> tensors = {x};
    group_.native()->allreduce(tensors, options);
  } else {
    const at::Tensor parts = at::empty({group_.size(), x.numel()}, x.options());
    gather(x, parts);  // as in sum(): a lost rank shows to all others at once
    x.view({-1}).copy_(parts.amax(0));
  }
}

void Replica::gather(const at::Tensor& mine, const at::Tensor& all) const {
  if (mine.is_cuda()) {
    c10d::AllgatherOptions options;
    options.asyncOp = false;
    at::Tensor out = all.view({-1}), in = mine.view({-1});
    group_.native()->_allgather_base(out, in, options);
  } else {
    group_.all_gather(all, mine).wait();
  }
}

void Replica::join_columns(const at::Tensor& mine, at::Tensor room, const at::Tensor& out) const {
  const int64_t ranks = group_.size(), rows = out.size(0), vocabulary = out.size(1);
  const int64_t widest = modeling::chunk_length(vocabulary, ranks), part = rows * widest;
  if (rows == 0) return;
  if (!room.defined()) room = at::empty({ranks * part}, out.options());
  const at::Tensor all = room.view({-1}).narrow(0, 0, ranks * part);
  gather(mine.as_strided({part}, {1}), all);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const modeling::Range columns = modeling::chunk_range(vocabulary, ranks, rank);
    const at::Tensor from = all.narrow(0, rank * part, rows * columns.size()).view({rows, columns.size()});
    out.narrow(1, columns.begin, columns.size()).copy_(from);
  }
}

void Replica::broadcast(const at::Tensor& x) const { group_.broadcast(x, 0).wait(); }

int64_t Replica::smallest(int64_t value) const {
  const at::Tensor negative = at::full({1}, -value, at::kLong);
  largest(negative);
  return -negative.item<int64_t>();
}

Replica make_replica(const sdk::Call& call, int64_t ranks) {
  if (ranks == 1) return {};
  const int64_t world = modeling::world_size(call);
  if (world % ranks != 0) {
    modeling::fail("native_cfg.tensor_parallel_size: got {}, wanted a divisor of the {} ranks of the run", ranks,
                   world);
  }
  const modeling::HostGroups groups(call, "generator");
  std::vector<model::RankList> lists;
  for (int64_t first = 0; first < world; first += ranks) {
    auto& list = lists.emplace_back();
    for (int64_t rank = first; rank < first + ranks; ++rank) list.push_back(static_cast<int32_t>(rank));
  }
  const modeling::Group group = groups.make(lists, "tp"), aside = groups.make(lists, "tp.aside");
  return {group, aside,
          fmt::format("group 'tp{}' of ranks [{}]", groups.suffix(),
                      fmt::join(lists[static_cast<size_t>(groups.rank() / ranks)], ", "))};
}

}  // namespace hexad::native
