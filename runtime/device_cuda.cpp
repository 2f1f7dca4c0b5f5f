#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "runtime/device.hpp"
#include "runtime/error.hpp"

namespace hexad::runtime::cuda {
namespace {

c10::DeviceIndex index_of(int32_t device_id) { return static_cast<c10::DeviceIndex>(device_id); }

c10d::ProcessGroupNCCL& nccl_of(c10d::ProcessGroup& group) {
  return static_cast<c10d::ProcessGroupNCCL&>(*group.getBackend(c10d::ProcessGroup::BackendType::NCCL));
}

}  // namespace

const char* version() {
  static const std::string text =
      std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  return text.c_str();
}

int32_t device_count() { return c10::cuda::device_count(); }

const char* device_name(int32_t device_id) {
  thread_local cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, device_id) == cudaSuccess ? properties.name : "";
}

int64_t bytes_used(int32_t device_id) {
  const c10::cuda::CUDAGuard guard(index_of(device_id));
  size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<int64_t>(total - free) : 0;
}

void use_device(int32_t device_id) {
  const int32_t count = device_count();
  if (device_id < 0 || device_id >= count)
    throw Error(HEXAD_INVALID_ARGUMENT,
                "CUDA device " + std::to_string(device_id) + " does not exist: " + std::to_string(count) + " visible");
  c10::cuda::set_device(index_of(device_id));
}

void* stream(int32_t device_id) {
  static std::mutex mutex;
  static std::map<int32_t, c10::cuda::CUDAStream> streams;
  std::lock_guard lock(mutex);
  auto found = streams.find(device_id);
  if (found == streams.end())
    found =
        streams.emplace(device_id, c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_of(device_id))).first;
  return found->second.stream();
}

void* allocate(int32_t device_id, uint64_t bytes) {
  const c10::cuda::CUDAGuard guard(index_of(device_id));
  return c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(stream(device_id)));
}

void release(void* pointer) { c10::cuda::CUDACachingAllocator::raw_delete(pointer); }

void range_push(const char* name) { nvtxRangePushA(name); }
void range_pop() { nvtxRangePop(); }

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout) {
  // 2: the watchdog aborts the communicators of a failed collective and does not tear the process down.
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", 1);
  setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 1);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}

void end_nccl(c10d::ProcessGroup& group) { nccl_of(group).abort(); }

void* nccl_handle(c10d::ProcessGroup& group) { return reinterpret_cast<void*>(nccl_of(group).getCommPtr()); }

void check_nccl(c10d::ProcessGroup& group) {
  switch (nccl_of(group).getError()) {
    case c10d::ErrorType::SUCCESS: return;
    case c10d::ErrorType::TIMEOUT:
      throw Error(HEXAD_DEADLINE_EXCEEDED, "an earlier NCCL collective of this group timed out");
    default: throw Error(HEXAD_UNAVAILABLE, "an earlier NCCL collective of this group failed: a rank is lost");
  }
}

}  // namespace hexad::runtime::cuda
