// A c10d group that counts what this rank sends over it, as ring algorithms do (nccl-tests, doc/PERFORMANCE.md): of N
// bytes over n ranks 2 (n - 1)/n N for an all-reduce; (n - 1)/n N for a reduce-scatter (N goes in) and an all-gather (N
// comes out); for an all-to-all the rows for other ranks; N for a message.
//
// Gloo takes room for collectives from LibTorch's allocator and holds it a while after they end; NCCL does not. So that
// the allocator counts the backend's tensors alone, collectives run at once, as all-reduces of memory that it never
// gave. Which bytes a backend asks to be sent does not depend on that.
#pragma once
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tests/plugins/backend/test_host.hpp"

namespace layout_bytes {

// Bytes by group and collective, "tp all-reduce".
inline std::map<std::string, double>& sent() {
  static std::map<std::string, double> all;
  return all;
}

class CountingGroup : public c10d::ProcessGroup {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;
  CountingGroup(c10d::ProcessGroup* real, std::string name)
      : c10d::ProcessGroup(real->getRank(), real->getSize()), real_(real), name_(std::move(name)) {}

  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    count("all-reduce", 2 * others() * bytes(tensors[0]));
    const at::Tensor room = room_like(tensors[0]).copy_(tensors[0]);
    tensors[0].copy_(reduced(room, options));
    return done();
  }
  Work _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions&) override {
    count("reduce-scatter", others() * bytes(in));
    const at::Tensor room = room_like(in).copy_(in);
    out.copy_(own_part(reduced(room), out));
    return done();
  }
  Work _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions&) override {
    count("all-gather", others() * bytes(out));
    const at::Tensor room = room_like(out).zero_();
    own_part(room, in).copy_(in);
    out.copy_(reduced(room));
    return done();
  }
  Work alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& receive, std::vector<int64_t>& send,
                     const c10d::AllToAllOptions& options) override {
    const int64_t staying = send.empty() ? in.size(0) / getSize() : send.at(static_cast<size_t>(getRank()));
    if (in.size(0) > 0) count("all-to-all", bytes(in[0]) * static_cast<double>(in.size(0) - staying));
    return real_->alltoall_base(out, in, receive, send, options);
  }
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    count("send", bytes(tensors[0]));
    return real_->send(tensors, to, tag);
  }
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override { return real_->recv(tensors, from, tag); }

 private:
  struct Done : c10d::Work {
    bool wait(std::chrono::milliseconds) override { return true; }
  };
  static Work done() { return c10::make_intrusive<Done>(); }
  static at::Tensor room_like(const at::Tensor& tensor) {
    static std::vector<std::max_align_t> room;
    room.resize(std::max(room.size(), tensor.nbytes() / sizeof(std::max_align_t) + 1));
    return at::from_blob(room.data(), tensor.sizes(), tensor.options());
  }
  at::Tensor reduced(const at::Tensor& room, const c10d::AllreduceOptions& options = {}) {
    std::vector<at::Tensor> tensors = {room};
    real_->allreduce(tensors, options)->wait();
    return room;
  }
  // This rank's part, shaped like `part`, of what the ranks share.
  at::Tensor own_part(const at::Tensor& whole, const at::Tensor& part) const {
    return whole.view({getSize(), -1})[getRank()].view(part.sizes());
  }
  double others() const { return static_cast<double>(getSize() - 1) / getSize(); }
  static double bytes(const at::Tensor& tensor) { return static_cast<double>(tensor.nbytes()); }
  void count(const char* collective, double bytes) { sent()[name_ + " " + collective] += bytes; }

  c10d::ProcessGroup* real_;
  std::string name_;
};

// From now on every group that a backend asks for counts, under the name that it was made with.
inline void count_groups() {
  static std::vector<c10::intrusive_ptr<CountingGroup>> kept;
  backend_test::wrap_group() = [](void* real) {
    const std::string& made = backend_test::group_name();
    kept.push_back(
        c10::make_intrusive<CountingGroup>(static_cast<c10d::ProcessGroup*>(real), made.substr(0, made.find('.'))));
    return static_cast<void*>(static_cast<c10d::ProcessGroup*>(kept.back().get()));
  };
}

}  // namespace layout_bytes
