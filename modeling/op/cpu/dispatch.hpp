// From tensors to the CPU kernels: which element types they take, and pointers of those types.
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

inline bool has_kernels(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

// Calls body(float{}) or body(BFloat16{}).
template <typename Body>
void with_elements(const at::Tensor& x, const Body& body) {
  if (x.scalar_type() == at::kFloat) {
    body(float{});
  } else {
    body(BFloat16{});
  }
}

template <typename T>
const T* data(const at::Tensor& x) {
  return static_cast<const T*>(x.const_data_ptr());
}

template <typename T>
T* mutable_data(at::Tensor& x) {
  return static_cast<T*>(x.mutable_data_ptr());
}

}  // namespace hexad::modeling::cpu
