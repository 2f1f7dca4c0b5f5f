// Ranks of a process group as threads of this process, for all-reduce (sum) and all-gather of CPU tensors.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <ATen/Functions.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace hexad::modeling {

// Where the ranks of one group leave what they have and wait for the others.
class Meeting {
 public:
  explicit Meeting(int size) : contributions_(size) {}

  // Everyone's tensors, by rank, once all are here.
  std::vector<at::Tensor> exchange(int rank, const at::Tensor& mine) {
    std::unique_lock lock(mutex_);
    contributions_[rank] = mine.clone();
    const int64_t round = round_;
    if (++arrived_ == int(contributions_.size())) {
      arrived_ = 0, ++round_;
      complete_ = contributions_;
      everyone_.notify_all();
    } else {
      everyone_.wait(lock, [&] { return round_ != round; });
    }
    return complete_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable everyone_;
  std::vector<at::Tensor> contributions_, complete_;
  int arrived_ = 0;
  int64_t round_ = 0;
};

class ThreadGroup : public c10d::ProcessGroup {
 public:
  ThreadGroup(int rank, int size, std::shared_ptr<Meeting> meeting)
      : c10d::ProcessGroup(rank, size), meeting_(std::move(meeting)) {}

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    at::Tensor sum = at::zeros_like(tensors[0]);
    for (const at::Tensor& part : meeting_->exchange(getRank(), tensors[0])) sum += part;
    tensors[0].copy_(sum);
    return c10::make_intrusive<Done>();
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                 const c10d::AllgatherOptions&) override {
    out.copy_(at::cat(meeting_->exchange(getRank(), in)));
    return c10::make_intrusive<Done>();
  }

 private:
  struct Done : c10d::Work {
    bool wait(std::chrono::milliseconds) override { return true; }
  };
  std::shared_ptr<Meeting> meeting_;
};

// The groups of one partition of the ranks 0 ... n-1, one object a rank.
inline std::map<int, c10::intrusive_ptr<c10d::ProcessGroup>> thread_groups(const std::vector<std::vector<int>>& parts) {
  std::map<int, c10::intrusive_ptr<c10d::ProcessGroup>> groups;
  for (const std::vector<int>& ranks : parts) {
    const auto meeting = std::make_shared<Meeting>(int(ranks.size()));
    for (size_t i = 0; i < ranks.size(); ++i)
      groups[ranks[i]] = c10::make_intrusive<ThreadGroup>(int(i), int(ranks.size()), meeting);
  }
  return groups;
}

// Runs body(rank) on `ranks` threads; rethrows the first exception.
inline void run_ranks(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace hexad::modeling
