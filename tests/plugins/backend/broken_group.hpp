// A process group whose collectives go wrong on purpose: tests that compare layouts must notice.
#pragma once
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <string>

namespace backend_test {

// Forwards to the real group but for one fault: "no all-reduce", "no reduce-scatter", "scaled reduce-scatter" (by the
// number of ranks), "no all-to-all", "no sum of tokens per expert".
class BrokenGroup : public c10d::ProcessGroup {
 public:
  using Done = c10::intrusive_ptr<c10d::Work>;

  BrokenGroup(c10d::ProcessGroup* real, std::string fault)
      : c10d::ProcessGroup(real->getRank(), real->getSize()), real_(real), fault_(std::move(fault)) {
    setDefaultBackend(real->getBackendType());  // NCCL's messages are joined, or ranks that both receive first wait
  }

  Done allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    // Numbers (norms, flags, losses) are left alone: ranks that disagree about them would wait for each other.
    if (fault_ == "no all-reduce" && tensors[0].numel() > 8) return done();
    // Of what is counted by expert, where a model has four.
    const bool by_expert = tensors[0].size(-1) == 4 && tensors[0].scalar_type() == at::kFloat;
    if (fault_ == "no sum of tokens per expert" && by_expert) return done();
    return real_->allreduce(tensors, options);
  }
  Done _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override {
    if (fault_ == "no reduce-scatter") {
      out.copy_(in.view({getSize(), -1})[getRank()].view_as(out));
      return done();
    }
    if (fault_ != "scaled reduce-scatter") return real_->_reduce_scatter_base(out, in, options);
    real_->_reduce_scatter_base(out, in, options)->wait();
    out.mul_(getSize());
    return done();
  }
  Done alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes, std::vector<int64_t>& in_sizes,
                     const c10d::AllToAllOptions& options) override {
    if (fault_ == "no all-to-all" && in.is_floating_point()) {
      out.zero_();
      return done();
    }
    return real_->alltoall_base(out, in, out_sizes, in_sizes, options);
  }
  Done _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override {
    return real_->_allgather_base(out, in, options);
  }
  Done broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return real_->broadcast(tensors, options);
  }
  Done send(std::vector<at::Tensor>& tensors, int to, int tag) override { return real_->send(tensors, to, tag); }
  Done recv(std::vector<at::Tensor>& tensors, int from, int tag) override { return real_->recv(tensors, from, tag); }
  void startCoalescing(at::DeviceType device) override { real_->startCoalescing(device); }
  Done endCoalescing(at::DeviceType device) override { return real_->endCoalescing(device); }

 private:
  struct DoneWork : c10d::Work {
    bool wait(std::chrono::milliseconds) override { return true; }
  };
  static Done done() { return c10::make_intrusive<DoneWork>(); }

  c10d::ProcessGroup* real_;
  std::string fault_;
};

}  // namespace backend_test
