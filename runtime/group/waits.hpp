// What every rank waits for in its collectives, told to whoever asks: a timeout then names the rank that did not come.
#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace hexad::runtime {

// A thread answers the other ranks' questions through the store, whatever this rank does.
class Waits {
 public:
  // `store` may be used by others too: no call of theirs holds it for long.
  Waits(c10::intrusive_ptr<c10d::Store> store, int32_t rank, int32_t world_size);
  ~Waits();
  Waits(const Waits&) = delete;

  // While it lives, this rank waits in `operation` over `group`.
  class Scope {
   public:
    Scope(Waits& waits, std::string group, std::string operation);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    Waits& waits_;
    int64_t id_;
  };

  // Asks the world ranks `ranks` why a wait over `group` failed (`what`): "missing: rank 3 (no answer: it ended, or was
  // stopped)". Takes up to three seconds, also when the rank that keeps the store was stopped. Never throws.
  // A world that has lost a rank is over: later calls repeat the first one's answer, which says more than theirs.
  std::string missing(const std::string& what, const std::string& group, const std::vector<int32_t>& ranks);

  // How long to wait for what is under way: `timeout` until a wait has failed, and then no more than a moment.
  std::chrono::milliseconds patience(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;
  struct Wait {
    std::string group, operation;
    Clock::time_point began;
  };
  void serve();
  std::string own_state();

  c10::intrusive_ptr<c10d::Store> store_;
  int32_t rank_;
  std::chrono::milliseconds pause_;  // between looks at the store
  std::mutex mutex_;                 // guards what follows
  std::map<int64_t, Wait> waits_;    // by order of beginning
  int64_t next_ = 0;
  Clock::time_point last_end_ = Clock::now();
  std::string loss_;  // what `missing` said first; empty until then
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace hexad::runtime
