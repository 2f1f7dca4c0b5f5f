// Small integer arrays on their way to the model's device.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hexad::native {

// int64 [n] on `device`. On CUDA the copy is enqueued from page-locked memory: the host does not wait.
at::Tensor device_indices(const std::vector<int64_t>& values, at::Device device);

}  // namespace hexad::native
