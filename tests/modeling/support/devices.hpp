// The devices that ops and models are tested on: the CPU, and a GPU where libtorch_cuda is loaded (LD_PRELOAD) and one
// is present.
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

}  // namespace hexad::modeling
