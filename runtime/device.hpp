// The CUDA half: device_cuda.cpp with HEXAD_CUDA, device_none.cpp (every function refuses) without.
#pragma once
#include <chrono>
#include <cstdint>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace hexad::runtime::cuda {

const char* version();  // "13.0", or "" in a build without CUDA
int32_t device_count();
const char* device_name(int32_t device_id);  // valid until this thread's next call
int64_t bytes_used(int32_t device_id);
void use_device(int32_t device_id);
// The compute stream of a device: made on the first call through c10 and never destroyed.
void* stream(int32_t device_id);
void* allocate(int32_t device_id, uint64_t bytes);  // stream-ordered on stream(device_id)
void release(void* pointer);
void range_push(const char* name);
void range_pop();

// NCCL whose watchdog cleans up after an error and leaves the process alive.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout);
void end_nccl(c10d::ProcessGroup& group);
void* nccl_handle(c10d::ProcessGroup& group);
// Throws when the watchdog has seen an error: kernels are asynchronous, so a collective reports a lost peer late.
void check_nccl(c10d::ProcessGroup& group);

}  // namespace hexad::runtime::cuda
