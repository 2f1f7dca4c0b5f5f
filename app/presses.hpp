// Ctrl-C, counted.
#pragma once
#include <atomic>
#include <csignal>
#include <cstdint>
#include <limits>

namespace hexad::cli {

// The first signal asks for an orderly end, a second press for one at once. One Ctrl-C may come as several signals: a
// terminal sends SIGINT to all of a job, and a launcher that got one too passes it on as SIGTERM; timeout(1) sends
// SIGTERM to its child and to their group. So a signal within a second of the first is a second press only if it is a
// SIGINT, and all since were.
class Presses {
 public:
  enum class Meaning : uint8_t { first, same, second };

  // For a signal handler, on any thread. `now_ms`: of a clock that does not go back.
  Meaning count(int signal, int64_t now_ms) {
    constexpr int64_t kOnePressMs = 1000;
    const int before = newest_.exchange(signal);
    if (before == 0) {
      first_ = signal, first_ms_ = now_ms;
      return Meaning::first;
    }
    if (signal != before) mixed_ = true;
    // The first may be handled just now, on another thread, and not have said when it was.
    const int64_t first_ms = first_ms_;
    const bool is_later = first_ms != kUnknown && now_ms - first_ms >= kOnePressMs;
    return is_later || (signal == SIGINT && signal == first_ && !mixed_) ? Meaning::second : Meaning::same;
  }

 private:
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();
  std::atomic<int> newest_ = 0, first_ = 0;
  std::atomic<int64_t> first_ms_ = kUnknown;
  std::atomic<bool> mixed_ = false;
};

}  // namespace hexad::cli
