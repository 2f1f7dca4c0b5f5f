// The ranks that run one copy of the model together, and what they exchange in a pass. Every rank calls the same
// functions in the same order. A rank that does not come ends a wait on the host at the group's timeout, with an error
// that names the group and the rank (c10::DistBackendError).
#pragma once
#include <ATen/core/Tensor.h>
#include <hexad/services.hpp>

#include <chrono>
#include <string>

#include "modeling/parallel/group.hpp"
#include "plugins/native/parallel/shard.hpp"

namespace hexad::native {

class Replica {
 public:
  Replica() = default;  // one rank
  // `name`: for messages, "group 'tp.generator0' of ranks [0, 1]".
  // `aside`: another group of the same ranks.
  Replica(modeling::Group group, modeling::Group aside, std::string name)
      : group_(group), aside_(aside), name_(std::move(name)) {}

  bool alone() const { return group_.size() == 1; }
  Shard shard() const { return {group_.rank(), group_.size()}; }
  const std::string& name() const { return name_; }
  std::chrono::milliseconds timeout() const;

  // x becomes the sum over the ranks, on a GPU in the order of LibTorch's current stream, also in a CUDA graph. The
  // same bits on every rank, and on a CPU whatever other rows x has: the ranks' parts are added in their order.
  void sum(const at::Tensor& x) const;
  // x becomes the largest of the ranks'; on a GPU likewise.
  void largest(const at::Tensor& x) const;
  // all: [ranks, as many numbers as `mine` has], in the order of ranks, both contiguous; on a GPU likewise.
  void gather(const at::Tensor& mine, const at::Tensor& all) const;
  // mine: [rows, this rank's columns] at the beginning of a contiguous piece of memory that has room for as many
  // columns as the widest part has. out: [rows, vocabulary], of all ranks' columns. room: memory for all parts, or
  // undefined.
  void join_columns(const at::Tensor& mine, at::Tensor room, const at::Tensor& out) const;

  // Between hosts: on the CPU, done at return.
  void broadcast(const at::Tensor& x) const;  // rank 0's
  int64_t smallest(int64_t value) const;

  // Of whoever runs the passes; what the functions above use.
  const modeling::Group& in_order() const { return group_; }
  // For what has no place in the order of passes: a thread may use it while another one runs them.
  const modeling::Group& aside() const { return aside_; }

 private:
  modeling::Group group_, aside_;
  std::string name_;
};

// The replica that this worker is in: `ranks` neighbours of the host's world. Collective over the world, unless `ranks`
// is 1. Throws modeling::Error when the world does not divide into such replicas.
Replica make_replica(const sdk::Call& call, int64_t ranks);

}  // namespace hexad::native
