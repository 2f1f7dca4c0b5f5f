// Memory of a GPU that another process maps (CUDA IPC), in the words of torch.multiprocessing.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "modeling/refit/staging.hpp"
#include "plugins/server_bridge/refit/ipc/pickle.hpp"

namespace hexad::bridge {

inline constexpr size_t kIpcHandleBytes = 64;  // of cudaIpcMemHandle_t

struct SharedMemory {
  std::string uuid;                                 // of the GPU: uuid_text
  std::array<std::byte, kIpcHandleBytes> handle{};  // of the allocation, which begins with the memory
  int64_t bytes = 0;
};

// Throws sdk::Error where the GPU's memory cannot be shared.
SharedMemory share(const refit::GpuStaging& staging);

// A GPU's 16 bytes as torch writes them: 8-4-4-4-12 digits, lower case, without "GPU-".
std::string uuid_text(std::span<const std::byte, 16> uuid);

// The tuple of arguments from which torch makes a tensor of the memory: one dimension of uint8. `device` adds the
// seventh. Source: torch.multiprocessing.reductions.rebuild_cuda_tensor (15 arguments) and c10's shareIpcHandle (two
// bytes before the handle), in 2.11.
//
// The counter of references that torch's senders keep in a file does not exist: the receiver's note of it fails, and is
// ignored. That the memory may be used again is known from the server's answers.
void add_tensor_arguments(Pickle& pickle, const SharedMemory& memory, const std::function<void(Pickle&)>& device);

}  // namespace hexad::bridge
