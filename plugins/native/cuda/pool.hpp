// Device memory for the KV cache, beside LibTorch's caching allocator: it comes from the driver and goes back to it, so
// that sleep gives it to whoever shares the GPU.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace hexad::native::cuda {

// Untouched memory on a CUDA device. Throws c10::OutOfMemoryError.
at::Tensor pool_tensor(at::IntArrayRef shape, at::ScalarType dtype, at::Device device);

// Copies whole blocks in each of `pools` pools of a [pools, blocks, ...] tensor: pairs (from, to), in order.
void copy_pool_blocks(const at::Tensor& pools, const std::vector<std::pair<int32_t, int32_t>>& pairs);

}  // namespace hexad::native::cuda
