#include "lib/http/client/event_loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace hexad::http::client {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event), "epoll_ctl");
  thread_ = std::thread([this] { serve(); });
}

void EventLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  const uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  thread_.join();
  {
    const std::lock_guard lock(mutex_);
    tasks_.clear();
  }
}

EventLoop::~EventLoop() {
  stop();
  ::close(wake_);
  ::close(epoll_);
}

void EventLoop::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
  const uint64_t one = 1;
  if (tasks_.size() == 1) (void)!::write(wake_, &one, sizeof one);
}

uint64_t EventLoop::after(Milliseconds delay, Task task) {
  const uint64_t name = next_timer_++;
  timers_by_name_[name] = timers_.emplace(Clock::now() + delay, Timer{name, std::move(task)});
  return name;
}

void EventLoop::forget(uint64_t timer) {
  const auto found = timers_by_name_.find(timer);
  if (found == timers_by_name_.end()) return;
  timers_.erase(found->second);
  timers_by_name_.erase(found);
}

void EventLoop::watch(int descriptor, uint32_t epoll_events, Ready ready) {
  epoll_event event{};
  event.events = epoll_events;
  event.data.fd = descriptor;
  const bool known = watched_.contains(descriptor);
  watched_[descriptor] = std::move(ready);
  // A descriptor that was closed without a word has left epoll by itself.
  if (::epoll_ctl(epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) < 0) {
    checked(::epoll_ctl(epoll_, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event), "epoll_ctl");
  }
}

void EventLoop::unwatch(int descriptor) {
  if (watched_.erase(descriptor)) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

int EventLoop::wait_ms() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<Milliseconds>(timers_.begin()->first - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

void EventLoop::run_tasks() {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (Task& task : tasks) task();
}

void EventLoop::run_timers() {
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const Task task = std::move(timers_.begin()->second.task);
    timers_by_name_.erase(timers_.begin()->second.name);
    timers_.erase(timers_.begin());
    task();
  }
}

void EventLoop::serve() {
  std::vector<epoll_event> events(256);
  for (;;) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd == wake_) {
        uint64_t ignored = 0;
        (void)!::read(wake_, &ignored, sizeof ignored);
      } else if (const auto found = watched_.find(event.data.fd); found != watched_.end()) {
        const Ready ready = found->second;  // it may unwatch itself
        ready(event.events);
      }
    }
    run_timers();
    run_tasks();
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

}  // namespace hexad::http::client
