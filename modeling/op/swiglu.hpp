// The gated activation of the MLP.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// silu(gate) * up, elementwise, same shape and dtype. Differentiable in both.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace hexad::modeling
