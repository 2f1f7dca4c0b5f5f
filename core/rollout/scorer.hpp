// Rewards while others generate: what has a response waits for its environment on a thread of this one's own.
#pragma once
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "core/rollout/turns.hpp"

namespace hexad::rollout {

// One thread uses it. What it is given it scores in one call a step, as much as there is: a slow environment sees large
// batches.
class Scorer {
 public:
  // Borrows the environments.
  explicit Scorer(const Environments& environments);
  ~Scorer();  // waits for the call that runs
  Scorer(const Scorer&) = delete;

  struct Job {
    int64_t key = 0;   // of the caller's
    int64_t step = 0;  // that the samples are of
    std::shared_ptr<Turns> turns;
  };
  // Nobody else touches the turns until they come back.
  void push(Job job);

  struct Scored {
    std::vector<Job> jobs;  // of one step
    Reported reported;
  };
  // What has come back. Throws what an environment threw.
  std::vector<Scored> take();
  bool busy() const;  // something is given and not taken

 private:
  void work();

  const Environments& environments_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Job> waiting_;
  std::vector<Scored> scored_;
  std::exception_ptr error_;
  bool working_ = false, over_ = false;
  std::thread thread_;
};

}  // namespace hexad::rollout
