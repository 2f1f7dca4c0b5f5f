#include "runtime/group/collective.hpp"

#include <fmt/format.h>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/tensor_view.hpp"

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

}  // namespace hexad::runtime
