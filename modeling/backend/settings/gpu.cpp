#include "modeling/backend/settings/gpu.hpp"

#include <hexad/services.hpp>

#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling {

std::string fp8_obstacle(Fp8 fp8, bool experts, int capability) {
  const std::string card = std::to_string(capability / 10) + "." + std::to_string(capability % 10);
  if (fp8 == Fp8::off) return {};
  if (capability < 89)
    return "FP8 wants a card of compute capability 8.9 or later, this one has " + card + ": set enabled: false";
  if (is_blockwise(fp8) && capability != 90)
    return "the recipe blockwise wants a card of compute capability 9.0 (H100, H200), this one has " + card +
           ": set fp8_recipe: tensorwise";
  if (experts && capability != 90 && capability != 100)
    return "FP8 with experts wants a card of compute capability 9.0 or 10.0, this one has " + card +
           ": set enabled: false";
  return {};
}

void check_gpu(Fp8 fp8, bool experts, at::Device device, const std::string& section) {
  if (!device.is_cuda()) return;
  const int capability = cuda::capability(device);
  if (const std::string obstacle = fp8_obstacle(fp8, experts, capability); !obstacle.empty())
    sdk::fail(HEXAD_UNIMPLEMENTED, "policy.%s.fp8_cfg: %s", section.c_str(), obstacle.c_str());
}

}  // namespace hexad::modeling
