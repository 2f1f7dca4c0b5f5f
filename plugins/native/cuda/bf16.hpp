// A tensor as the kernels take it.
#pragma once
#include <ATen/core/Tensor.h>
#include <cuda_bf16.h>

namespace hexad::native::cuda {

// Null where it is undefined.
inline __nv_bfloat16* bf16(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<__nv_bfloat16*>(tensor.data_ptr()) : nullptr;
}

}  // namespace hexad::native::cuda
