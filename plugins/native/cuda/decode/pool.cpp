#include "plugins/native/cuda/decode/pool.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <unordered_set>

#include "plugins/native/cuda/check.hpp"
#include "plugins/native/cuda/elementwise.hpp"

namespace hexad::native::cuda {

at::Tensor pool_tensor(at::IntArrayRef shape, at::ScalarType dtype, at::Device device, const char* what) {
  const c10::cuda::CUDAGuard guard(device);
  const size_t bytes = size_t(c10::multiply_integers(shape)) * c10::elementSize(dtype);
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) {
    cudaGetLastError();  // it is not sticky
    c10::cuda::CUDACachingAllocator::emptyCache();
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
      cudaGetLastError();
      TORCH_CHECK_WITH(OutOfMemoryError, false,
                       fmt::format("{} {:.1f} GiB of the GPU, which has less free: lower native_cfg.kv_cache_gb", what,
                                   double(bytes) / 1073741824.0));
    }
  }
  const auto release = [device](void* pointer) {
    const c10::cuda::CUDAGuard on(device);
    cudaFree(pointer);
  };
  return at::from_blob(memory, shape, release, at::TensorOptions(dtype).device(device));
}

void copy_pool_blocks(const at::Tensor& pools, const std::vector<std::pair<int32_t, int32_t>>& pairs) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(pools.device().index());
  const int64_t pool_bytes = pools.stride(0) * pools.element_size(),
                block_bytes = pools.stride(1) * pools.element_size();
  for (size_t begin = 0; begin < pairs.size();) {
    // The kernel knows no order: a run ends before a block that the run has touched is written, or is read once
    // written.
    std::unordered_set<int32_t> read, written;
    size_t end = begin;
    for (; end < pairs.size(); ++end) {
      const auto [from, to] = pairs[end];
      if (read.contains(to) || written.contains(to) || written.contains(from)) break;
      read.insert(from), written.insert(to);
    }
    const int64_t count = static_cast<int64_t>(end - begin);
    const at::Tensor host = at::empty({2 * count}, at::TensorOptions(at::kInt).pinned_memory(true));
    for (int64_t i = 0; i < count; ++i) {
      host.mutable_data_ptr<int32_t>()[2 * i] = pairs[begin + i].first;
      host.mutable_data_ptr<int32_t>()[2 * i + 1] = pairs[begin + i].second;
    }
    const at::Tensor list = host.to(pools.device(), at::kInt, /*non_blocking=*/true);
    copy_blocks(pools.data_ptr(), int(pools.size(0)), pool_bytes, block_bytes, list.const_data_ptr<int32_t>(),
                int(count), stream);
    begin = end;
  }
}

}  // namespace hexad::native::cuda
