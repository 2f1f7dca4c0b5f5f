// What vLLM's workers unpickle when weights come without a disk.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "modeling/refit/nccl/sender.hpp"

namespace hexad::vllm {

using refit::UniqueId;

inline constexpr size_t kIpcHandleBytes = 64;  // of cudaIpcMemHandle_t

// Where a buffer of ours lies on a GPU that both processes use: pickle (protocol 3) of {uuid: arguments} for one of
// `bytes` at the start of its allocation, as one dimension of uint8. uuid: of the GPU, lower case, without "GPU-".
// Source: torch.multiprocessing.reductions.rebuild_cuda_tensor (15 arguments) and c10's shareIpcHandle (two bytes
// before the handle), as vLLM 0.24's vllm/distributed/weight_transfer/ipc_engine.py calls them.
std::string ipc_pickle(const std::string& uuid, std::span<const std::byte, kIpcHandleBytes> handle, int64_t bytes);

// A GPU's 16 bytes as vLLM writes them: 8-4-4-4-12 digits.
std::string uuid_text(std::span<const std::byte, 16> uuid);

// A communicator's id: a ctypes structure. Source: vLLM's pynccl_wrapper.ncclUniqueId,
// StatelessProcessGroup.broadcast_obj.
std::string unique_id_pickle(const UniqueId& id);

}  // namespace hexad::vllm
