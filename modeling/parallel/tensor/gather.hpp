// Between whole weights and the parts of tensor-parallel ranks.
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/parallel/group.hpp"
#include "modeling/parallel/tensor/plan.hpp"

namespace hexad::modeling {

// The elements of `slice`: a view of the whole tensor.
at::Tensor box_of(at::Tensor whole, const WeightSlice& slice);

// The whole weight on every rank of `tp`, from this rank's tensor_part of it. Collective; without gradients. The result
// is `part` itself when that is whole.
at::Tensor gather_parts(const ModelConfig& config, const WeightInfo& info, const at::Tensor& part, const Group& tp);

}  // namespace hexad::modeling
