#include "core/environment/watched_call.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "core/environment/patience.hpp"

namespace hexad::environment {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kToHeed = std::chrono::seconds(1);  // that a call has to end once it is told to
constexpr auto kLook = std::chrono::milliseconds(50);

// Of the call's thread and of who waits; whoever is last lets go.
struct Watched {
  std::function<void(const std::atomic<bool>&)> call;
  std::atomic<bool> cancelled = false;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::exception_ptr error;

  void run() {
    std::exception_ptr thrown;
    try {
      call(cancelled);
    } catch (...) {
      thrown = std::current_exception();
    }
    call = nullptr;
    const std::scoped_lock lock(mutex);
    error = thrown;
    over = true;
    changed.notify_all();
  }
};

// The stranger's code may be anywhere while statics are destroyed.
void end_without_destructors() {
  static const int once = ::on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        ::_exit(status);
      },
      nullptr);
  (void)once;
}

Clock::duration seconds_of(double count) {
  constexpr double kMost = 1e9;
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(count, kMost)));
}

}  // namespace

CallEnd watch_call(std::function<void(const std::atomic<bool>& cancelled)> call, double limit_s,
                   const std::atomic<int>* interrupted) {
  const auto watched = std::make_shared<Watched>();
  watched->call = std::move(call);
  std::thread thread([watched] { watched->run(); });
  CallEnd end;
  auto told_at = Clock::now() + seconds_of(limit_s);
  std::unique_lock lock(watched->mutex);
  while (!watched->changed.wait_for(lock, kLook, [&] { return watched->over; })) {
    const auto now = Clock::now();
    if (interrupted && *interrupted > 0 && !end.interrupted && !end.late) {
      end.interrupted = true;
      told_at = std::min(told_at, now + kInterruptGrace - kToHeed);
    }
    if (now < told_at) continue;
    end.late = !end.interrupted;
    watched->cancelled = true;
    if (now >= told_at + kToHeed) break;
  }
  end.returned = watched->over;
  end.error = watched->error;
  // An interruption that did not end the call has ended nothing.
  end.interrupted = end.interrupted && watched->cancelled;
  lock.unlock();
  if (end.returned) {
    thread.join();
  } else {
    end_without_destructors();
    thread.detach();
  }
  return end;
}

}  // namespace hexad::environment
