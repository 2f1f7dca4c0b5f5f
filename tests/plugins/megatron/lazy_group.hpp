// Collectives that happen as late as they may: a result is not there, and what was sent is not to be touched, until it
// is waited for.
#pragma once
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <limits>
#include <string>
#include <vector>

#include "tests/plugins/backend/test_host.hpp"

namespace backend_test {

struct Event {
  std::string what;  // "reduce", "gather", and with " done" when waited for; "exchange" for anything else
  int64_t elements;
};

inline std::vector<Event>& events() {
  static std::vector<Event> all;
  return all;
}

class LazyWork : public c10d::Work {
 public:
  explicit LazyWork(std::function<void()> run) : run_(std::move(run)) {}
  bool wait(std::chrono::milliseconds) override {
    if (run_) run_();
    run_ = nullptr;
    return true;
  }

 private:
  std::function<void()> run_;
};

// Reductions and gathers over data-parallel ranks, with tensors of one dimension, are late; the others are the real
// group's.
class LazyGroup : public c10d::ProcessGroup {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;
  explicit LazyGroup(c10d::ProcessGroup* real) : c10d::ProcessGroup(real->getRank(), real->getSize()), real_(real) {}

  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const at::Tensor tensor = tensors[0];
    if (tensor.dim() != 1 || tensor.numel() < 64) return at_once(real_->allreduce(tensors, options), tensor);
    const at::Tensor sent = taken(tensor);
    return late("reduce", tensor, [=, this] {
      std::vector<at::Tensor> sum = {sent};
      real_->allreduce(sum, options)->wait();
      tensor.copy_(sent);
    });
  }
  Work _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override {
    const at::Tensor result = out, sent = taken(in);
    return late("reduce", in, [=, this] {
      at::Tensor sum = at::empty_like(result), from = sent;
      real_->_reduce_scatter_base(sum, from, options)->wait();
      result.copy_(sum);
    });
  }
  Work _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override {
    if (out.dim() != 1) return at_once(real_->_allgather_base(out, in, options), out);
    const at::Tensor sent = in.clone(), result = out;
    taken(out);
    return late("gather", out, [=, this] {
      at::Tensor from = sent, all = at::empty_like(result);
      real_->_allgather_base(all, from, options)->wait();
      result.copy_(all);
    });
  }
  Work alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& receive, std::vector<int64_t>& send,
                     const c10d::AllToAllOptions& options) override {
    return at_once(real_->alltoall_base(out, in, receive, send, options), out);
  }
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return real_->broadcast(tensors, options);
  }
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override { return real_->send(tensors, to, tag); }
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override { return real_->recv(tensors, from, tag); }

 private:
  static at::Tensor taken(const at::Tensor& tensor) {
    const at::NoGradGuard no_grad;
    const at::Tensor copy = tensor.clone();
    at::Tensor(tensor).fill_(std::numeric_limits<double>::quiet_NaN());
    return copy;
  }
  static Work late(const std::string& what, const at::Tensor& tensor, std::function<void()> run) {
    const int64_t elements = tensor.numel();
    events().push_back({what, elements});
    return c10::make_intrusive<LazyWork>([=, run = std::move(run)] {
      const at::NoGradGuard no_grad;
      run();
      events().push_back({what + " done", elements});
    });
  }
  static Work at_once(Work work, const at::Tensor& tensor) {
    events().push_back({"exchange", tensor.numel()});
    return work;
  }

  c10d::ProcessGroup* real_;
};

// From now on all groups of this process are late.
inline void use_lazy_groups() {
  static std::vector<c10::intrusive_ptr<LazyGroup>> kept;
  wrap_group() = [](void* real) {
    kept.push_back(c10::make_intrusive<LazyGroup>(static_cast<c10d::ProcessGroup*>(real)));
    return static_cast<void*>(static_cast<c10d::ProcessGroup*>(kept.back().get()));
  };
}

}  // namespace backend_test
