// One thread that waits: for sockets, for timers, for tasks from other threads. All network state of an instance is
// its.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace hexad::http::client {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

class EventLoop {
 public:
  using Task = std::function<void()>;
  using Ready = std::function<void(uint32_t epoll_events)>;

  EventLoop();
  ~EventLoop();  // stops
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs what is due, then ends the thread; later tasks are dropped. From any other thread.
  void stop();

  // Any thread. A task may throw nothing.
  void post(Task task);
  // Any thread but the loop's own: returns when it has run, with its result or its exception.
  template <typename Function>
  auto run(Function&& function) -> decltype(function());

  // On the loop's thread. A timer fires once; 0 is never the name of one.
  uint64_t after(Milliseconds delay, Task task);
  void forget(uint64_t timer);
  void watch(int descriptor, uint32_t epoll_events, Ready ready);
  void unwatch(int descriptor);

 private:
  void serve();
  void run_tasks();
  void run_timers();
  int wait_ms() const;

  struct Timer {
    uint64_t name;
    Task task;
  };
  int epoll_ = -1, wake_ = -1;
  std::mutex mutex_;
  std::vector<Task> tasks_;  // under mutex_
  bool stopping_ = false;    // under mutex_; once true, nothing runs any more
  std::multimap<Clock::time_point, Timer> timers_;
  std::unordered_map<uint64_t, std::multimap<Clock::time_point, Timer>::iterator> timers_by_name_;
  uint64_t next_timer_ = 1;
  std::unordered_map<int, Ready> watched_;
  std::thread thread_;
};

template <typename Function>
auto EventLoop::run(Function&& function) -> decltype(function()) {
  using Result = decltype(function());
  auto task = std::make_shared<std::packaged_task<Result()>>(std::forward<Function>(function));
  std::future<Result> result = task->get_future();
  post([task = std::move(task)] { (*task)(); });
  return result.get();  // a dropped task breaks the promise, which throws
}

// Ends the loop's thread before the members that are declared above it, even if one below it throws.
struct StopsLoop {
  EventLoop& loop;
  ~StopsLoop() { loop.stop(); }
};

}  // namespace hexad::http::client
