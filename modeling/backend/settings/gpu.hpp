// What a card must have for the settings of a training backend, asked before anything is loaded.
#pragma once
#include <string>

#include <ATen/core/Tensor.h>

#include "modeling/op/fp8/fp8.hpp"

namespace hexad::modeling {

// Empty, or why a card of this compute capability (10 x major + minor) cannot train with `fp8`, and what can.
// Products with a scale a tensor: cuBLASLt from 8.9 on; with scales of strips and blocks: on 9.0 alone; those of
// `experts`, grouped: by LibTorch's _scaled_grouped_mm on 9.0 and 10.0.
std::string fp8_obstacle(Fp8 fp8, bool experts, int capability);

// Nothing on a CPU. `experts`: the model has some. Throws sdk::Error where this build has no kernels for the card, or
// the card no products in FP8; `section`: the backend's, "dtensor_cfg".
void check_gpu(Fp8 fp8, bool experts, at::Device device, const std::string& section);

}  // namespace hexad::modeling
