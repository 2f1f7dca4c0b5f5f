// Several ranks as threads of the test, with gloo groups between them.
#pragma once
#include <doctest/doctest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// One rank of `run_ranks`.
class TestRank {
 public:
  TestRank(int rank, int world, c10::intrusive_ptr<c10d::Store> store) : rank_(rank), world_(world), store_(store) {}

  int rank() const { return rank_; }
  int world() const { return world_; }
  Group world_group() {
    std::vector<int> all(static_cast<size_t>(world_));
    for (int i = 0; i < world_; ++i) all[static_cast<size_t>(i)] = i;
    return group(all);
  }
  // The group of these ranks, this one among them. Every member asks for its groups in the same order.
  Group group(const std::vector<int>& ranks) {
    if (ranks.size() == 1) return {};
    std::string name;
    for (int rank : ranks) name += std::to_string(rank) + "_";
    names_.push_back(name);
    name += std::to_string(std::count(names_.begin(), names_.end(), name));
    const int rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
    const int size = static_cast<int>(ranks.size());
    const auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
    auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
    options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
    auto made = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
    made->setBackend(at::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                     c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options));
    made->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    groups_.push_back(made);
    return Group(made.get());
  }

 private:
  int rank_, world_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<std::string> names_;
  std::vector<c10::intrusive_ptr<c10d::ProcessGroup>> groups_;
};

// Runs `body` on every rank at once; an exception of any becomes the test's failure.
inline void run_ranks(int world, const std::function<void(TestRank&)>& body) {
  // c10d's flight recorder is one for the process, and not made for groups that several threads use at once.
  static const bool no_recorder = setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1) == 0;
  (void)no_recorder;
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> errors(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        TestRank self(rank, world, store);
        body(self);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < world; ++rank) {
    const std::string& error = errors[static_cast<size_t>(rank)];
    CHECK_MESSAGE(error.empty(), "rank " << rank << ": " << error);
  }
}

}  // namespace hexad::modeling
