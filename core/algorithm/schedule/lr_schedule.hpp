// policy.scheduler: PyTorch's learning-rate schedulers, singly or one after another.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

namespace hexad::algorithm {

// The learning rate after 0, 1, 2, ... steps; one step per rollout. Reproduces PyTorch's recursive formulas, including
// what chaining does at milestones, to 1e-12 relative. A value: its state is the number of steps and the last rate.
class LrSchedule {
 public:
  // `scheduler`: null (constant), {name, kwargs}, or a list of those and one {milestones: [...]}. `base` is
  // optimizer.kwargs.lr. Known names, with or without "torch.optim.lr_scheduler.": LinearLR, ConstantLR, StepLR,
  // MultiStepLR, ExponentialLR, PolynomialLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, OneCycleLR. Throws
  // Error(config) for other names, unknown or missing kwargs and values that PyTorch refuses.
  LrSchedule(const nlohmann::ordered_json& scheduler, double base);
  LrSchedule(LrSchedule&&) noexcept;
  LrSchedule& operator=(LrSchedule&&) noexcept;
  ~LrSchedule();

  double rate() const;
  int64_t steps() const;
  void step();
  // Steps until steps() == count; for resuming. `count` is not less than steps().
  void advance_to(int64_t count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hexad::algorithm
