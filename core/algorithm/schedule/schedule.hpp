// Learning rate and weight decay over a run: PyTorch's schedulers, or the one that a backend's own keys describe.
#pragma once
#include <cstdint>
#include <memory>

#include "core/config/typed/run_config.hpp"

namespace hexad::algorithm {

// Values for the next optimizer step; step() once a rollout.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual double rate() const = 0;
  virtual double weight_decay() const = 0;  // NaN: the optimizer's own
  virtual void step() = 0;
  // Steps until `count` have been made; for resuming.
  virtual void advance_to(int64_t count) = 0;
};

// The backend's own (PolicyConfig::schedule) where its manifest says that there is one; else policy.scheduler over the
// backend's rate, or policy.optimizer's. Throws Error(config) for schedules that make no sense.
std::unique_ptr<Schedule> make_schedule(const config::RunConfig& run);

}  // namespace hexad::algorithm
