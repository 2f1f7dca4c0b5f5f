// After an interruption, what is nearly done is waited for, and what takes longer is given up.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace hexad::environment {

inline constexpr auto kInterruptGrace = std::chrono::seconds(5);

// Watches `interrupted` (null: never set) as long as it lives; over() becomes true so long after it was above 0.
class Patience {
 public:
  explicit Patience(const std::atomic<int>* interrupted) {
    if (interrupted)
      watcher_ = std::jthread([this, interrupted](const std::stop_token& end) { watch(interrupted, end); });
  }
  const std::atomic<bool>& over() const { return over_; }

 private:
  void watch(const std::atomic<int>* interrupted, const std::stop_token& end) {
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> since;
    std::unique_lock lock(mutex_);
    while (!over_ &&
           !changed_.wait_for(lock, end, std::chrono::milliseconds(50), [&] { return end.stop_requested(); })) {
      if (*interrupted == 0) continue;
      if (!since) since = Clock::now();
      if (Clock::now() - *since >= kInterruptGrace) over_ = true;
    }
  }

  std::atomic<bool> over_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread watcher_;
};

}  // namespace hexad::environment
