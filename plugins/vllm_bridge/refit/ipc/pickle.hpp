// What vLLM's CUDA IPC engine unpickles: where a buffer of ours lies on a GPU that both processes use.
// Source: torch.multiprocessing.reductions.rebuild_cuda_tensor (15 arguments) and c10's shareIpcHandle (two bytes
// before the handle), as vLLM 0.24's vllm/distributed/weight_transfer/ipc_engine.py calls them.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace hexad::vllm {

inline constexpr size_t kIpcHandleBytes = 64;  // of cudaIpcMemHandle_t

// Pickle (protocol 3) of {uuid: arguments} for a buffer of `bytes` at the start of its allocation, as one dimension of
// uint8. uuid: of the GPU, lower case, without "GPU-".
std::string ipc_pickle(const std::string& uuid, std::span<const std::byte, kIpcHandleBytes> handle, int64_t bytes);

// A GPU's 16 bytes as vLLM writes them: 8-4-4-4-12 digits.
std::string uuid_text(std::span<const std::byte, 16> uuid);

}  // namespace hexad::vllm
