// Memory that goes back to the system, or to the device's driver, when its tensor goes.
#pragma once
#include <ATen/Functions.h>

#include "plugins/native/cuda/decode/pool.hpp"
#include "plugins/native/model/large_pages.hpp"

namespace hexad::native {

// Untouched. `what`: "the KV cache needs", for the error. Throws c10::OutOfMemoryError on a GPU.
inline at::Tensor own_memory(at::IntArrayRef shape, at::ScalarType dtype, at::Device device, const char* what) {
  if (device.is_cuda()) return cuda::pool_tensor(shape, dtype, device, what);
  const at::Tensor memory = at::empty(shape, at::TensorOptions(dtype).device(device));
  prefer_large_pages(memory.data_ptr(), memory.nbytes());
  return memory;
}

}  // namespace hexad::native
