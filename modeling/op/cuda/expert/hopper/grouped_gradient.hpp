// Gradients of experts' weights by Hopper's instructions (wgmma, TMA). runs_hopper_kernels() says where they run.
#pragma once
#include "modeling/op/cuda/expert/expert_kernels.hpp"

namespace hexad::modeling::cuda {

// grouped_gradient_scratch() and add_grouped_gradient() on a device that runs Hopper's kernels.
int64_t hopper_gradient_scratch(const GroupedGradientCall& call);
void add_hopper_gradient(const GroupedGradientCall& call, void* scratch, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
