#include "runtime/group/watched_gloo.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace hexad::runtime {
namespace {

using Watched = WatchedGloo::Watched;

// Gloo makes a reduce-scatter of all-reduces of its own group: the outer operation alone is watched.
thread_local bool is_beginning = false;

struct Beginning {
  Beginning() { is_beginning = true; }
  ~Beginning() { is_beginning = false; }
};

std::string text_of(const std::exception& error) {
  const auto* const own = dynamic_cast<const c10::Error*>(&error);
  return own ? own->what_without_backtrace() : error.what();
}

[[noreturn]] void fail_with_missing(const Watched& group, const char* operation, const std::vector<int32_t>& peers,
                                    const std::exception& error) {
  const std::string what = fmt::format("{} over {} failed", operation, group.name);
  throw c10::DistBackendError(
      {__func__, __FILE__, __LINE__},
      fmt::format("{}; {} ({})", what, group.waits.missing(what, group.name, peers), text_of(error)));
}

struct WatchedWork : c10d::Work {
  c10::intrusive_ptr<c10d::Work> inner;
  const Watched* group;  // outlives its works, as any c10d group
  const char* operation;
  std::vector<int32_t> peers;

  bool isCompleted() override { return inner->isCompleted(); }
  bool isSuccess() const override { return inner->isSuccess(); }
  std::exception_ptr exception() const override { return inner->exception(); }
  int sourceRank() const override { return inner->sourceRank(); }
  std::vector<at::Tensor> result() override { return inner->result(); }
  void synchronize() override { inner->synchronize(); }
  void abort() override { inner->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return inner->getFuture(); }
  uint64_t getSequencenumber() const override { return inner->getSequencenumber(); }

  bool wait(std::chrono::milliseconds timeout) override {
    const Waits::Scope scope(group->waits, group->name, operation);
    try {
      return inner->wait(group->waits.patience(timeout));
    } catch (const std::exception& error) {
      fail_with_missing(*group, operation, peers, error);
    }
  }
};

}  // namespace

template <typename Begin>
WatchedGloo::Work WatchedGloo::watch(const char* operation, std::vector<int32_t> peers, Begin&& begin) {
  if (is_beginning) return begin();
  const Beginning beginning;
  const Waits::Scope scope(group_.waits, group_.name, operation);  // a first message makes its connection
  try {
    auto work = c10::make_intrusive<WatchedWork>();
    work->inner = begin();
    work->group = &group_, work->operation = operation, work->peers = std::move(peers);
    return work;
  } catch (const std::exception& error) {
    fail_with_missing(group_, operation, peers, error);
  }
}

WatchedGloo::Work WatchedGloo::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  return watch("broadcast", group_.ranks, [&] { return ProcessGroupGloo::broadcast(tensors, options); });
}

WatchedGloo::Work WatchedGloo::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  return watch("all-reduce", group_.ranks, [&] { return ProcessGroupGloo::allreduce(tensors, options); });
}

WatchedGloo::Work WatchedGloo::_allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
  return watch("all-gather", group_.ranks, [&] { return ProcessGroupGloo::_allgather_base(out, in, options); });
}

WatchedGloo::Work WatchedGloo::_reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                    const c10d::ReduceScatterOptions& options) {
  return watch("reduce-scatter", group_.ranks,
               [&] { return ProcessGroupGloo::_reduce_scatter_base(out, in, options); });
}

WatchedGloo::Work WatchedGloo::alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes,
                                             std::vector<int64_t>& in_sizes, const c10d::AllToAllOptions& options) {
  return watch("all-to-all", group_.ranks,
               [&] { return ProcessGroupGloo::alltoall_base(out, in, out_sizes, in_sizes, options); });
}

WatchedGloo::Work WatchedGloo::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  return watch("send", peer(to), [&] { return ProcessGroupGloo::send(tensors, to, tag); });
}

WatchedGloo::Work WatchedGloo::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  return watch("receive", peer(from), [&] { return ProcessGroupGloo::recv(tensors, from, tag); });
}

WatchedGloo::Work WatchedGloo::barrier(const c10d::BarrierOptions& options) {
  return watch("barrier", group_.ranks, [&] { return ProcessGroupGloo::barrier(options); });
}

}  // namespace hexad::runtime
