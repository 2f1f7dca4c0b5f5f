// Global gradient norm and clipping.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Norm of order `norm_type` (1, 2, ... or infinity) of all elements of all shards on all ranks of `group`; what several
// ranks hold must be listed on one of them only. Not finite if an element is not.
double global_grad_norm(const std::vector<at::Tensor>& grads, double norm_type, const Group& group);

// The factor of torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1. Megatron's clip is the same.
double clip_coefficient(double norm, double max_norm);

}  // namespace hexad::modeling
