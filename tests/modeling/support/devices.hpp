// The devices that ops and models are tested on: the CPU, and a GPU where libtorch_cuda is loaded (LD_PRELOAD) and one
// is present; and what their memory holds.
#pragma once
#include <vector>

#include <ATen/Context.h>
#include <torch/types.h>

namespace hexad::modeling {

inline std::vector<at::Device> test_devices() {
  std::vector<at::Device> devices = {at::kCPU};
  if (at::globalContext().hasCUDA()) devices.push_back(at::Device(at::kCUDA, 0));
  return devices;
}

// Memory that nobody has written holds NaN while this lives, so that an operator that leaves a hole is seen.
class PoisonedMemory {
 public:
  PoisonedMemory() : context_(at::globalContext()), filled_(context_.deterministicFillUninitializedMemory()) {
    context_.setDeterministicFillUninitializedMemory(true);
    context_.setDeterministicAlgorithms(true, /*warn_only=*/true);  // the other half of the switch
  }
  ~PoisonedMemory() {
    context_.setDeterministicAlgorithms(false, false);
    context_.setDeterministicFillUninitializedMemory(filled_);
  }

 private:
  at::Context& context_;
  bool filled_;
};

}  // namespace hexad::modeling
