// PyTorch's learning-rate schedulers, one class each, in their chained form: the next rate from the last one.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace hexad::algorithm::detail {

class TorchScheduler {
 public:
  virtual ~TorchScheduler() = default;
  // One step on: the rate after it, given the rate before.
  double step(double rate) { return next(rate, ++epoch_); }
  // Begins anew, as SequentialLR does at its milestones: the rate at epoch 0.
  double restart(double rate) {
    epoch_ = 0;
    return first(rate);
  }

 protected:
  virtual double next(double rate, int64_t epoch) = 0;
  // The closed form at epoch 0, where PyTorch has one.
  virtual double first(double rate) { return next(rate, 0); }

 private:
  int64_t epoch_ = -1;
};

// One {name, kwargs} mapping. `initial` is the optimizer's initial rate, which OneCycleLR replaces. Throws
// Error(config).
std::unique_ptr<TorchScheduler> make_torch_scheduler(const nlohmann::ordered_json& config, const std::string& path,
                                                     double& initial);

}  // namespace hexad::algorithm::detail
