// Gloo whose waits can be asked after: a collective that fails says over which group, and which rank did not come.
#pragma once
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "runtime/group/waits.hpp"

namespace hexad::runtime {

class WatchedGloo : public c10d::ProcessGroupGloo {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;

  // `name`: of the group, for messages. `ranks`: of the world, in group order. `waits` outlives the group.
  WatchedGloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
              const c10::intrusive_ptr<Options>& options, Waits& waits, std::string name, std::vector<int32_t> ranks)
      : ProcessGroupGloo(store, rank, size, options), group_{waits, std::move(name), std::move(ranks)} {}

  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  Work _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override;
  Work alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes, std::vector<int64_t>& in_sizes,
                     const c10d::AllToAllOptions& options) override;
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override;
  Work barrier(const c10d::BarrierOptions& options) override;

  struct Watched {
    Waits& waits;
    std::string name;
    std::vector<int32_t> ranks;
  };

 private:
  // Starts what `begin` starts; its wait is watched. `peers`: the world ranks that it needs.
  template <typename Begin>
  Work watch(const char* operation, std::vector<int32_t> peers, Begin&& begin);
  std::vector<int32_t> peer(int rank) const { return {group_.ranks[static_cast<size_t>(rank)]}; }

  Watched group_;
};

}  // namespace hexad::runtime
