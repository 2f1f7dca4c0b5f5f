// The end of a run that is interrupted before its first step, and waits for what nobody can interrupt.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/algorithm/run/interruption.hpp"
#include "lib/base/timer.hpp"

namespace hexad::cli {

// As long as it lives: two seconds after an interruption that came before the first step, takes back what the run has
// made and calls `end`, which does not return. Until then the run may end by itself. Later ones are the run's.
class EarlyEnd {
 public:
  EarlyEnd(algorithm::Interruption& interruption, std::function<void()> end)
      : interruption_(interruption),
        end_(std::move(end)),
        thread_([this](const std::stop_token& over) { watch(over); }) {}

 private:
  void watch(const std::stop_token& over) {
    constexpr double kGraceS = 2;
    constexpr auto kLookEvery = std::chrono::milliseconds(100);
    std::optional<Stopwatch> since;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, over, kLookEvery, [&] { return over.stop_requested(); })) {
      if (interruption_.interrupted == 0 || interruption_.has_trained) continue;
      if (!since) since.emplace();
      if (since->seconds() > kGraceS) interruption_.take_back(end_);
    }
  }

  algorithm::Interruption& interruption_;
  std::function<void()> end_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace hexad::cli
