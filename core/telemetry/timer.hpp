// Where the time of a step goes, under NeMo-RL's names ("generation", "policy_training", ...).
#pragma once
#include <chrono>
#include <map>
#include <string>

namespace hexad::telemetry {

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
  // Adds the time until its end to `name`.
  class Scope {
   public:
    Scope(Timer& timer, std::string name) : timer_(timer), name_(std::move(name)) {}
    ~Scope() { timer_.add(name_, watch_.seconds()); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Timer& timer_;
    std::string name_;
    Stopwatch watch_;
  };
  [[nodiscard]] Scope measure(std::string name) { return Scope(*this, std::move(name)); }

  void add(const std::string& name, double seconds) { seconds_[name] += seconds; }
  const std::map<std::string, double>& seconds() const { return seconds_; }
  void reset() { seconds_.clear(); }

 private:
  std::map<std::string, double> seconds_;
};

}  // namespace hexad::telemetry
