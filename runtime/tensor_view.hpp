// Borrowed at::Tensor views of DLTensors.
#pragma once
#include <ATen/core/Tensor.h>
#include <hexad/abi.h>

namespace hexad::runtime {

// Shares the memory; `what` names the tensor in errors. Throws unless it is contiguous, on the CPU or CUDA.
at::Tensor view(const DLTensor* tensor, const char* what);

}  // namespace hexad::runtime
