// Beside the kernels, whose symbols stay in the library: plugins and tests ask too.
#include "modeling/op/cuda/architecture.hpp"

#include <array>
#include <atomic>

namespace hexad::modeling::cuda {

int kernel_architecture(int device) {
  static std::array<std::atomic<int>, 64> known{};
  if (device < 0 || device >= static_cast<int>(known.size())) return probe_architecture(device);
  int architecture = known[device].load(std::memory_order_relaxed);
  if (architecture == 0) known[device].store(architecture = probe_architecture(device), std::memory_order_relaxed);
  return architecture;
}

bool has_hopper_kernels() { return HEXAD_HOPPER_KERNELS; }  // modeling/CMakeLists.txt

bool runs_hopper_kernels(int device) { return has_hopper_kernels() && kernel_architecture(device) == 90; }

}  // namespace hexad::modeling::cuda
