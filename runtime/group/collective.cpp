#include "runtime/group/collective.hpp"

#include <ATen/Functions.h>
#include <c10/core/StreamGuard.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/memory.hpp"

namespace hexad::runtime {
namespace {

// Names the operation and the place in every error, and refuses to go on after an asynchronous failure.
template <typename Body>
hexad_code collective(hexad_comm* comm, const char* name, Body&& body) {
  const auto what = [&] {
    return fmt::format("{} over \"{}\", rank {} of {}", name, comm->name, comm->rank, comm->size());
  };
  return guarded(what, [&] {
    if (comm->group->getBackendType() == c10d::ProcessGroup::BackendType::NCCL) cuda::check_nccl(*comm->group);
    body()->wait();
  });
}

c10d::ReduceOp::RedOpType reduce_op(int32_t op) {
  switch (op) {
    case HEXAD_OP_SUM: return c10d::ReduceOp::SUM;
    case HEXAD_OP_MAX: return c10d::ReduceOp::MAX;
    case HEXAD_OP_MIN: return c10d::ReduceOp::MIN;
    default: throw Error(HEXAD_INVALID_ARGUMENT, fmt::format("unknown reduction {}", op));
  }
}

void check_sizes(const at::Tensor& whole, const at::Tensor& part, int32_t size) {
  if (whole.numel() != part.numel() * size || whole.scalar_type() != part.scalar_type())
    throw Error(
        HEXAD_INVALID_ARGUMENT,
        fmt::format("got {} elements of {} against {} of {}, wanted {} times as many of one type", whole.numel(),
                    c10::toString(whole.scalar_type()), part.numel(), c10::toString(part.scalar_type()), size));
}

using Work = c10::intrusive_ptr<c10d::Work>;

struct Arrival {
  at::Tensor room, place;  // room is the place itself where that is contiguous
};

// Gloo tells messages between two ranks apart by these.
class Tags {
 public:
  int next(int32_t peer) { return counts_[peer]++; }

 private:
  std::map<int32_t, int> counts_;
};

}  // namespace

hexad_code all_reduce(hexad_comm* comm, DLTensor* tensor, int32_t op) {
  return collective(comm, "all_reduce", [&] {
    std::vector<at::Tensor> tensors = {view(tensor, "tensor")};
    c10d::AllreduceOptions options;
    options.reduceOp = reduce_op(op);
    return comm->group->allreduce(tensors, options);
  });
}

hexad_code all_gather(hexad_comm* comm, const DLTensor* in, DLTensor* out) {
  return collective(comm, "all_gather", [&] {
    at::Tensor part = view(in, "in").flatten(), whole = view(out, "out").flatten();
    check_sizes(whole, part, comm->size());
    return comm->group->_allgather_base(whole, part);
  });
}

hexad_code reduce_scatter(hexad_comm* comm, const DLTensor* in, DLTensor* out) {
  return collective(comm, "reduce_scatter", [&] {
    at::Tensor whole = view(in, "in").flatten(), part = view(out, "out").flatten();
    check_sizes(whole, part, comm->size());
    return comm->group->_reduce_scatter_base(part, whole);
  });
}

hexad_code broadcast(hexad_comm* comm, DLTensor* tensor, int32_t root) {
  return collective(comm, "broadcast", [&] {
    if (root < 0 || root >= comm->size())
      throw Error(HEXAD_INVALID_ARGUMENT, fmt::format("root {} is outside the group of {}", root, comm->size()));
    std::vector<at::Tensor> tensors = {view(tensor, "tensor")};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return comm->group->broadcast(tensors, options);
  });
}

hexad_code barrier(hexad_comm* comm) {
  // Through gloo on every device: a barrier is for the host (files are written, stores are filled).
  return collective(comm, "barrier",
                    [&] { return comm->group->getBackend(c10d::ProcessGroup::BackendType::GLOO)->barrier(); });
}

hexad_code exchange(hexad_comm* comm, const hexad_transfer* sends, int64_t num_sends, const hexad_transfer* receives,
                    int64_t num_receives) {
  const auto what = [&] {
    return fmt::format("exchange of {} and {} tensors over \"{}\", rank {} of {}", num_sends, num_receives, comm->name,
                       comm->rank, comm->size());
  };
  return guarded(what, [&] {
    c10d::ProcessGroup& group = *comm->group;
    const bool nccl = group.getBackendType() == c10d::ProcessGroup::BackendType::NCCL;
    if (nccl) cuda::check_nccl(group);
    std::optional<c10::StreamGuard> guard;
    if (nccl) guard.emplace(compute_stream(session().device()));
    std::vector<at::Tensor> parts;
    std::vector<Arrival> arrivals;
    for (const hexad_transfer& send : std::span(sends, static_cast<size_t>(num_sends)))
      parts.push_back(strided_view(send.tensor, "a tensor to send").contiguous());
    for (const hexad_transfer& receive : std::span(receives, static_cast<size_t>(num_receives))) {
      const at::Tensor place = strided_view(receive.tensor, "a tensor to receive");
      arrivals.push_back({place.is_contiguous() ? place : at::empty(place.sizes(), place.options()), place});
    }
    if (parts.empty() && arrivals.empty()) return;
    std::vector<Work> works;
    Tags out, in;
    if (nccl) group.startCoalescing(c10::DeviceType::CUDA);
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<at::Tensor> one = {parts[i]};
      works.push_back(group.send(one, sends[i].peer, out.next(sends[i].peer)));
    }
    for (size_t i = 0; i < arrivals.size(); ++i) {
      std::vector<at::Tensor> one = {arrivals[i].room};
      works.push_back(group.recv(one, receives[i].peer, in.next(receives[i].peer)));
    }
    if (nccl) works = {group.endCoalescing(c10::DeviceType::CUDA)};
    for (const Work& work : works)
      if (work) work->wait();
    for (const Arrival& arrival : arrivals)
      if (!arrival.place.is_same(arrival.room)) arrival.place.copy_(arrival.room);
  });
}

}  // namespace hexad::runtime
