// What vLLM's workers unpickle when weights come without a disk.
#pragma once
#include <string>

#include "modeling/refit/nccl/sender.hpp"
#include "plugins/server_bridge/refit/ipc/shared_memory.hpp"

namespace hexad::vllm {

using refit::UniqueId;

// Where a buffer of ours lies on a GPU that both processes use: pickle of {uuid: arguments of a tensor}. Source: vLLM
// 0.24's vllm/distributed/weight_transfer/ipc_engine.py.
std::string ipc_pickle(const bridge::SharedMemory& memory);

// A communicator's id: a ctypes structure. Source: vLLM's pynccl_wrapper.ncclUniqueId,
// StatelessProcessGroup.broadcast_obj.
std::string unique_id_pickle(const UniqueId& id);

}  // namespace hexad::vllm
