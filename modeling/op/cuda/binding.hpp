// From tensors to the kernels' pointers, types and stream.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "modeling/op/cuda/element.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::modeling::cuda {

inline Element element_of(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat ? Element::f32 : x.scalar_type() == at::kBFloat16 ? Element::bf16 : Element::f16;
}

inline cudaStream_t stream_of(const at::Tensor& x) { return c10::cuda::getCurrentCUDAStream(x.get_device()).stream(); }

// [T, columns...] whose rows are contiguous and begin on 16 bytes, with any distance between them; copied when not so.
inline at::Tensor with_row_stride(const at::Tensor& x) {
  const bool rows_aligned = is_aligned(x.const_data_ptr()) && x.stride(0) * x.element_size() % 16 == 0;
  return x[0].is_contiguous() && rows_aligned ? x : aligned(x);
}

}  // namespace hexad::modeling::cuda
