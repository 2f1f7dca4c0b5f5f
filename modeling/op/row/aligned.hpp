// Where kernels read and write words of 16 bytes.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

inline bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// Contiguous and beginning on 16 bytes, as kernels read it; copied when not so. A weight in a buffer of many need not
// be.
inline at::Tensor aligned(const at::Tensor& x) {
  const at::Tensor whole = x.contiguous();
  return is_aligned(whole.const_data_ptr()) ? whole : whole.clone();
}

}  // namespace hexad::modeling
