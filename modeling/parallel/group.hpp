// The collectives that sharded training needs, over a c10d process group or, with one rank, over nothing.
#pragma once
#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace hexad::modeling {

enum class Reduce { sum, max };

// A collective, or an exchange, under way. wait() makes its result usable on the current stream (on the CPU: complete)
// and throws what went wrong; the tensors must stay alive until then. A default-made one is complete.
class Pending {
 public:
  Pending() = default;
  explicit Pending(c10::intrusive_ptr<c10d::Work> work) { add(std::move(work)); }
  void add(c10::intrusive_ptr<c10d::Work> work) {
    if (work) works_.push_back(std::move(work));
  }
  void wait() {
    for (const auto& work : works_) work->wait();
    works_.clear();
  }
  // Waits, for a call that has failed: what goes wrong is dropped, as the error that brought it here is reported.
  void settle() noexcept {
    try {
      wait();
    } catch (const std::exception&) {
      works_.clear();
    }
  }

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

// Every rank of the group calls the same functions in the same order. Tensors are contiguous and of one dtype.
class Group {
 public:
  Group() = default;                                            // one rank, no process group
  explicit Group(c10d::ProcessGroup* group) : group_(group) {}  // borrowed; null: one rank

  int64_t rank() const { return group_ ? group_->getRank() : 0; }
  int64_t size() const { return group_ ? group_->getSize() : 1; }
  c10d::ProcessGroup* native() const { return group_; }  // null: one rank

  // out: size() times in, ordered by rank.
  Pending all_gather(at::Tensor out, at::Tensor in) const;
  // in: size() times out; rank r receives the sum of everyone's part r.
  Pending reduce_scatter(at::Tensor out, at::Tensor in) const;
  Pending all_reduce(at::Tensor tensor, Reduce op = Reduce::sum) const;
  // `root`'s tensor reaches every rank.
  Pending broadcast(at::Tensor tensor, int64_t root) const;
  // The first send[0] rows of `in` go to rank 0 and so on; `out` takes receive[r] rows of rank r, in the order of
  // ranks.
  Pending all_to_all(at::Tensor out, at::Tensor in, std::vector<int64_t> receive, std::vector<int64_t> send) const;
  // Point to point, any number of messages at once and in both directions. A receive takes the message that the other
  // rank sent with the same tag. Two ranks that exchange several messages list them in the same order.
  struct Message {
    at::Tensor tensor;
    int64_t peer;
    int32_t tag;
    bool receives;
  };
  Pending exchange(const std::vector<Message>& messages) const;
  // One message alone. On a GPU two ranks serve what they post to each other in order: one must send first where the
  // other receives first.
  Pending post(const Message& message) const;
  // Blocks the host until every rank is here.
  void barrier() const;

 private:
  c10d::ProcessGroup* group_ = nullptr;
};

}  // namespace hexad::modeling
