// What SGLang's workers unpickle when weights come by CUDA IPC.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "modeling/refit/weight_names.hpp"
#include "plugins/server_bridge/refit/ipc/shared_memory.hpp"

namespace hexad::sglang {

// Weights of so many bytes each, end to end from the start of the memory: a pickle of {"flattened_tensor": the memory,
// "metadata": [FlattenedTensorMetadata]}. Every class and function in it is one that SGLang's SafeUnpickler lets pass.
// Source: SGLang 0.5.23's tensor_bucket.py, patch_torch.py (the device is named by its UUID) and SafeUnpickler.
std::string bucket_pickle(const bridge::SharedMemory& memory, refit::Slices weights, std::span<const int64_t> sizes);

}  // namespace hexad::sglang
