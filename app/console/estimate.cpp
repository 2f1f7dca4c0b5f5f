#include "app/console/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace hexad::console {

void Estimate::begin(int64_t step, int64_t last_step, double now) {
  if (step_ == 0) mark_ = now;
  step_ = step, last_step_ = last_step;
  running_ = true;
}

void Estimate::end(double now) {
  constexpr size_t kNewest = 20;
  if (first_ && seconds_.size() == 1) seconds_.clear(), first_ = false;
  seconds_.push_back(now - mark_);
  if (seconds_.size() > kNewest) seconds_.pop_front();
  mark_ = now;
  running_ = false;
}

std::optional<double> Estimate::left_s(double now) const {
  if (seconds_.empty()) return std::nullopt;
  const double mean = std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / static_cast<double>(seconds_.size());
  const auto steps = static_cast<double>(last_step_ - step_);
  // The step that runs may take longer than the others, and never less than nothing.
  const double of_this = running_ ? std::max(0.0, mean - (now - mark_)) : 0;
  return mean * steps + of_this;
}

std::string duration_text(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const int64_t s = std::llround(std::max(0.0, seconds));
  if (s < kMinute) return fmt::format("{} s", s);
  if (s < kHour) return fmt::format("{} min", s / kMinute);
  if (s < kDay) return fmt::format("{} h {:02} min", s / kHour, s % kHour / kMinute);
  return fmt::format("{} d {} h", s / kDay, s % kDay / kHour);
}

}  // namespace hexad::console
