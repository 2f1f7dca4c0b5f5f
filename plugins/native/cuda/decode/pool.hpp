// Device memory beside LibTorch's caching allocator, for what is large and sleeps: it comes from the driver and goes
// back to it, so that sleep gives it to whoever shares the GPU.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace hexad::native::cuda {

// Untouched memory on a CUDA device. `what`: "the KV cache needs". Throws c10::OutOfMemoryError that begins with it.
at::Tensor pool_tensor(at::IntArrayRef shape, at::ScalarType dtype, at::Device device, const char* what);

// Copies whole blocks in each of `pools` pools of a [pools, blocks, ...] tensor: pairs (from, to), in order.
void copy_pool_blocks(const at::Tensor& pools, const std::vector<std::pair<int32_t, int32_t>>& pairs);

}  // namespace hexad::native::cuda
