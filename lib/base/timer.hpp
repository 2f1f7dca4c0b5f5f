// How long things take.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace hexad {

// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point began_ = Clock::now();
};

// Sums seconds by name; scopes may nest and repeat. One thread.
class Timer {
 public:
  // `begins` is told the name of every scope that begins.
  explicit Timer(std::function<void(const std::string&)> begins = nullptr) : begins_(std::move(begins)) {}

  // Adds the time until its end to `name`. Phases that follow each other are assigned to one scope, which ends the one
  // before: `phase = timer.measure("write")`.
  class Scope {
   public:
    Scope(Timer& timer, std::string name) : timer_(&timer), name_(std::move(name)) {}
    ~Scope() { end(); }
    Scope(Scope&& other) noexcept
        : timer_(std::exchange(other.timer_, nullptr)), name_(std::move(other.name_)), watch_(other.watch_) {}
    Scope& operator=(Scope&& other) noexcept {
      end();
      timer_ = std::exchange(other.timer_, nullptr), name_ = std::move(other.name_), watch_ = other.watch_;
      return *this;
    }
    void end() {
      if (Timer* const timer = std::exchange(timer_, nullptr)) timer->add(name_, watch_.seconds());
    }

   private:
    Timer* timer_;  // null: it has ended
    std::string name_;
    Stopwatch watch_;
  };
  [[nodiscard]] Scope measure(std::string name) {
    if (begins_) begins_(name);
    return Scope(*this, std::move(name));
  }

  void add(const std::string& name, double seconds) { seconds_[name] += seconds; }
  const std::map<std::string, double>& seconds() const { return seconds_; }
  void reset() { seconds_.clear(); }

 private:
  std::function<void(const std::string&)> begins_;
  std::map<std::string, double> seconds_;
};

}  // namespace hexad
