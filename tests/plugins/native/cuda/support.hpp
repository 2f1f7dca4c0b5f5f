// Tests of the generator's CUDA kernels: tensors on the device, and how far results are from a wider reference.
#pragma once
#include <ATen/Functions.h>
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "plugins/native/cuda/fp8/fp8_linear.hpp"

namespace native_cuda_test {

inline const at::Device kGpu(at::kCUDA, 0);

inline at::Tensor on_gpu(const std::vector<int32_t>& values) { return at::tensor(values, at::kInt).to(kGpu); }
// Random in bf16, as the kernels read it.
inline at::Tensor random(at::IntArrayRef shape, double scale = 1) {
  return (at::randn(shape, at::TensorOptions(at::kFloat).device(kGpu)) * scale).to(at::kBFloat16);
}
// For outputs: what is not written shows.
inline at::Tensor poisoned(at::IntArrayRef shape, at::ScalarType dtype = at::kBFloat16) {
  return at::full(shape, std::numeric_limits<double>::quiet_NaN(), at::TensorOptions(dtype).device(kGpu));
}
using hexad::native::cuda::bf16;
inline at::Tensor wide(const at::Tensor& tensor) { return tensor.to(at::kDouble); }

// ‖got - want‖ / ‖want‖; nan counts as infinite.
inline double distance(const at::Tensor& got, const at::Tensor& want) {
  const double d = ((wide(got) - wide(want)).norm() / wide(want).norm()).item<double>();
  return d == d ? d : std::numeric_limits<double>::infinity();
}
// Results rounded to bf16 once lie at most 2^-8 from exact ones, part by part.
inline constexpr double kRounded = 4e-3;

inline void synchronize() { REQUIRE(cudaDeviceSynchronize() == cudaSuccess); }

}  // namespace native_cuda_test
