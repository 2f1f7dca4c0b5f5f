#include "modeling/parallel/group.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {
namespace {

c10::intrusive_ptr<c10d::Work> start(c10d::ProcessGroup& group, const Group::Message& message) {
  std::vector<at::Tensor> tensors = {message.tensor};
  const int peer = static_cast<int>(message.peer);
  return message.receives ? group.recv(tensors, peer, message.tag) : group.send(tensors, peer, message.tag);
}

}  // namespace

// Flat views: gloo wants the parts of the larger tensor to have the smaller one's shape.
Pending Group::all_gather(at::Tensor out, at::Tensor in) const {
  out = out.view({-1}), in = in.view({-1});
  if (group_) return Pending(group_->_allgather_base(out, in));
  out.copy_(in);
  return {};
}

Pending Group::reduce_scatter(at::Tensor out, at::Tensor in) const {
  out = out.view({-1}), in = in.view({-1});
  if (group_) return Pending(group_->_reduce_scatter_base(out, in));
  out.copy_(in);
  return {};
}

Pending Group::all_reduce(at::Tensor tensor, Reduce op) const {
  if (!group_) return {};
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  c10d::AllreduceOptions options;
  options.reduceOp = op == Reduce::max ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
  return Pending(group_->allreduce(tensors, options));
}

Pending Group::broadcast(at::Tensor tensor, int64_t root) const {
  if (!group_) return {};
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return Pending(group_->broadcast(tensors, options));
}

Pending Group::all_to_all(at::Tensor out, at::Tensor in, std::vector<int64_t> receive,
                          std::vector<int64_t> send) const {
  if (group_) return Pending(group_->alltoall_base(out, in, receive, send));
  out.copy_(in);
  return {};
}

Pending Group::exchange(const std::vector<Message>& messages) const {
  if (messages.empty()) return {};
  // One launch for all: NCCL runs the messages of a group in order, and two ranks that both receive first would wait
  // for each other.
  const bool joined = group_->getBackendType() == c10d::ProcessGroup::BackendType::NCCL;
  const at::DeviceType device = messages[0].tensor.device().type();
  if (joined) group_->startCoalescing(device);
  Pending pending;
  for (const Message& message : messages) {
    auto work = start(*group_, message);
    if (!joined) pending.add(std::move(work));
  }
  if (joined) pending.add(group_->endCoalescing(device));
  return pending;
}

Pending Group::post(const Message& message) const { return Pending(start(*group_, message)); }

void Group::barrier() const {
  // An all-reduce of a host scalar: gloo carries it on every device, and the host waits for it.
  if (group_) all_reduce(at::zeros({1}, at::kFloat)).wait();
}

}  // namespace hexad::modeling
