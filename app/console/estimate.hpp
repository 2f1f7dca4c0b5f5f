// How long a run has still to go.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace hexad::console {

// From the newest steps, whose time is all that passes from one step's end to the next one's: what runs between them
// (validation, checkpoints) counts. The first step of a run, which is slower, counts while there is no other. Times are
// seconds of one clock.
class Estimate {
 public:
  void begin(int64_t step, int64_t last_step, double now);
  void end(double now);
  // Until the last step's end; nothing before a step has ended.
  std::optional<double> left_s(double now) const;

 private:
  int64_t step_ = 0, last_step_ = 0;  // the one that runs, or that has ended
  bool running_ = false, first_ = true;
  double mark_ = 0;  // when the newest step ended, or the first one began
  std::deque<double> seconds_;
};

// "45 s", "12 min", "1 h 05 min", "2 d 3 h".
std::string duration_text(double seconds);

}  // namespace hexad::console
