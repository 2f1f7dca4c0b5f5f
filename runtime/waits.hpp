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
  // `store` is not used by anyone else: it serves one blocking call at a time.
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

  // Asks the world ranks `ranks` why a wait over `group` did not end: "missing: rank 3 (no answer: it ended, or was
  // stopped)". Takes up to two seconds. Never throws.
  std::string missing(const std::string& group, const std::vector<int32_t>& ranks);

 private:
  using Clock = std::chrono::steady_clock;
  struct Wait {
    std::string group, operation;
    Clock::time_point began;
  };
  void serve();
  std::string own_state();
  std::string ask(const std::string& group, const std::vector<int32_t>& ranks);

  c10::intrusive_ptr<c10d::Store> store_;
  int32_t rank_;
  std::chrono::milliseconds pause_;  // between looks at the store
  std::mutex mutex_;                 // guards what follows
  std::map<int64_t, Wait> waits_;    // by order of beginning
  int64_t next_ = 0;
  Clock::time_point last_end_ = Clock::now();
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace hexad::runtime
