// A process group whose ranks are threads of this process, and engines that give it to a plugin.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/verify/engine.hpp"

namespace hexad::verify {

// The collectives of two ranks, in host memory. A rank waits for the other at most a few seconds; a rank that calls
// another collective than its neighbour is told so.
class ThreadGroup {
 public:
  static constexpr int kRanks = 2;

  struct Part {  // what one rank brings
    std::string what;
    const DLTensor* in = nullptr;
    DLTensor* out = nullptr;
    int32_t argument = 0;  // operation or root
  };
  // "" or what is wrong.
  std::string run(int rank, const Part& part);

  void put(const std::string& key, std::string value);
  bool get(const std::string& key, int64_t timeout_ms, std::string& value);

  // The n-th service of communication that each rank calls from now on fails; 0: none.
  void fail_at(int64_t n);
  bool trips(int rank);  // counts a call
  bool tripped() const { return tripped_; }

 private:
  bool meet();  // false if the other did not come

  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  int64_t round_ = 0;
  Part parts_[kRanks];
  std::map<std::string, std::string> store_;
  std::atomic<int64_t> fuse_[kRanks] = {};
  std::atomic<bool> tripped_ = false;
};

// The engine of one rank: "world" and "dp" are the group. One group in a process, because the host table is one.
class RankEngine : public Engine {
 public:
  RankEngine(Engine& real, ThreadGroup& group, int rank);
  const hexad_host* host() const override { return host_; }
  std::unique_ptr<Call> call(const CallOptions& options) override;
  std::unique_ptr<Config> config(const std::map<std::string, std::string>& changes) override {
    return real_.config(changes);
  }

 private:
  Engine& real_;
  int rank_;
  const hexad_host* host_;
};

}  // namespace hexad::verify
