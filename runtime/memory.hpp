// Memory and copies of the C table, and borrowed at::Tensor views of DLTensors.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <hexad/abi.h>

#include "runtime/runtime.h"

namespace hexad::runtime {

void* stream(int32_t device_type, int32_t device_id);
hexad_code alloc(int32_t device_type, int32_t device_id, uint64_t bytes, void** out);
void free(void* pointer, int32_t device_type, int32_t device_id);
hexad_code tensor_new(const DLTensor* prototype, DLManagedTensorVersioned** out);
hexad_code copy(const DLTensor* source, DLTensor* destination);

// A view that shares the memory; `what` names the tensor in errors. Throws unless it is contiguous, on the CPU or CUDA.
at::Tensor view(const DLTensor* tensor, const char* what);
// The same of one that may be strided.
at::Tensor strided_view(const DLTensor* tensor, const char* what);

// The stream of a CUDA device that plugins compute on.
c10::Stream compute_stream(at::Device device);

}  // namespace hexad::runtime
