// Borrowed at::Tensor views of DLTensors.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <hexad/abi.h>

namespace hexad::runtime {

// Shares the memory; `what` names the tensor in errors. Throws unless it is contiguous, on the CPU or CUDA.
at::Tensor view(const DLTensor* tensor, const char* what);
// The same of one that may be strided.
at::Tensor strided_view(const DLTensor* tensor, const char* what);

// The stream of a CUDA device that plugins compute on.
c10::Stream compute_stream(at::Device device);

}  // namespace hexad::runtime
